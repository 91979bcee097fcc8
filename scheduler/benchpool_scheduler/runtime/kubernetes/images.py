"""The image that a user's notebook runs, resolved from a tag to a digest: pure.

A tag may name another image tomorrow, and on the next node. The pod's status contains the image
that was started, as ``REPOSITORY@sha256:...`` if it came from a registry. An image that was loaded
into a node manually has no digest by which other nodes could find it. Its ID is that of its
configuration, or the digest of a repository that the loading tool invented.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import Struct, field

from benchpool_scheduler.runtime import Pinned
from benchpool_scheduler.runtime.kubernetes.volumes import WHOSE

NOTEBOOK = "notebook"
"""KubeSpawner's name of the container that runs the server."""
DIGEST = "@sha256:"


class _Meta(Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Container(Struct, frozen=True):
    name: str = ""
    image: str = ""


class _Spec(Struct, frozen=True):
    containers: list[_Container] = []


class _Status(Struct, frozen=True):
    name: str = ""
    image_id: str = field(default="", name="imageID")


class _PodStatus(Struct, frozen=True, rename="camel"):
    container_statuses: list[_Status] = []


class RawNotebookPod(Struct, frozen=True):
    """A notebook pod as the API server sends it."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _PodStatus = _PodStatus()


@dataclass(frozen=True, slots=True)
class ImageView:
    """A notebook of ``user``: the image as its pod names it, and the image that was started."""

    user: str
    image: str
    started: str


def keep_image(pod: RawNotebookPod) -> ImageView | None:
    """Return the image of a notebook pod; None before its container has begun."""
    image = next((one.image for one in pod.spec.containers if one.name == NOTEBOOK), "")
    statuses = pod.status.container_statuses
    started = next((one.image_id for one in statuses if one.name == NOTEBOOK), "")
    user = pod.metadata.annotations.get(WHOSE, "")
    return ImageView(user, image, started) if user and image and started else None


def pin(image: str, user: str, running: Iterable[ImageView]) -> Pinned:
    """Return an image with the digest that a notebook of the user runs.

    >>> seen = ImageView("susan", "lab/nb:1", "docker.io/lab/nb@sha256:4f")
    >>> pin("lab/nb:1", "susan", [seen]).image
    'lab/nb@sha256:4f'
    >>> pin("lab/nb:2", "susan", [seen])
    Pinned(image='lab/nb:2', why='no running notebook of susan has this image')
    """
    if "@" in image:
        return Pinned(image)
    ids = {seen.started for seen in running if (seen.user, seen.image) == (user, image)}
    if not ids:
        return Pinned(image, f"no running notebook of {user} has this image")
    digests = {_digest(one, image) for one in ids}
    if len(digests) > 1:
        return Pinned(image, f"the notebooks of {user} run {len(digests)} images of this name")
    digest = digests.pop()
    if digest is None:
        return Pinned(image, "it was loaded onto the notebook's node without a registry digest")
    return Pinned(f"{_repository(image)}{DIGEST}{digest}")


def _digest(started: str, image: str) -> str | None:
    """Return the digest of a started image if it is of the named image's repository, or None."""
    repository, at, digest = started.rpartition("://")[2].partition(DIGEST)
    return digest if at and _in_full(repository) == _in_full(_repository(image)) else None


def _repository(image: str) -> str:
    """Return an image's name without its tag.

    >>> _repository("registry.lab:5000/nb"), _repository("registry.lab:5000/nb:1")
    ('registry.lab:5000/nb', 'registry.lab:5000/nb')
    """
    folder, slash, last = image.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def _in_full(repository: str) -> str:
    """Return a repository with its registry, as container runtimes write it.

    >>> [_in_full(name) for name in ("python", "lab/nb", "registry.lab:5000/nb", "localhost/nb")]
    ['docker.io/library/python', 'docker.io/lab/nb', 'registry.lab:5000/nb', 'localhost/nb']
    """
    first, slash, _ = repository.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return repository
    return f"docker.io/{repository}" if slash else f"docker.io/library/{repository}"
