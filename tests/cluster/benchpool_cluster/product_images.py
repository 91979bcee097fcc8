"""The images of benchpool itself, built from `images/` without Docker or an image registry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchpool_cluster import images

ROOT = Path(__file__).resolve().parents[3]
PARTS = ("hub", "proxy", "scheduler", "notebook", "job")
PREFIX = "benchpool.test/"
TAG = "tests"


@dataclass(frozen=True, slots=True)
class Built:
    """An image as an archive for containerd.

    Attributes:
        seconds: Build time in seconds; almost zero for a cached image.
    """

    name: str
    archive: Path
    seconds: float


def wheel() -> Path:
    """Return the only wheel, which every image installs.

    Raises:
        images.CannotMake: There is no wheel.
    """
    found = sorted((ROOT / "dist").glob("benchpool-*.whl"))
    if len(found) != 1:
        raise images.CannotMake(f"{len(found)} wheels are in dist/, not 1: run `make build`")
    return found[0]


def build(part: str) -> Built:
    """Build one image; unchanged images are kept, archives of older versions are deleted."""
    wheel()
    began = time.monotonic()
    name = f"{PREFIX}{part}:{TAG}"
    archive = images.make(ROOT / "images" / part / "Dockerfile", name, context=ROOT)
    for before in archive.parent.glob(f"{archive.name.rpartition('-')[0]}-*.tar"):
        if before != archive:
            before.unlink(missing_ok=True)
    return Built(name, archive, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Running:
    """A container of an image without a cluster; commands run in it one at a time."""

    built: Built
    container: str

    def run(self, *command: str) -> str:
        """Run a command as the image's own user and return its output; a failure raises."""
        return images.buildah("run", "--isolation", "chroot", self.container, "--", *command)


@contextmanager
def run(built: Built) -> Iterator[Running]:
    """Yield a container of an image."""
    container = images.buildah("from", built.name).strip()
    try:
        yield Running(built, container)
    finally:
        images.buildah("rm", container)
