"""Container images without an image registry: built from Debian packages, kept as archives.

An archive is built once per content, and ``load`` imports it into the nodes' containerd.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchpool_cluster import build, debian, places
from benchpool_cluster.node import PAUSE

BASE = "benchpool.test/worker-base:1"
DISTRIBUTION = "bookworm"
PACKAGES = "ca-certificates,python3"
HOST_BUNDLE = "/run/host-ca.crt"

CONNECT_TIMEOUT = "300s"
"""Timeout of ctr; a containerd that imports several images may exceed ctr's default of 10 s."""


class CannotMake(Exception):
    """Error: an image cannot be built; the text ends with the tool's output."""


def pause() -> Path:
    """Return the archive of the image that holds a pod's namespaces: one static program."""
    program = build.find("pause")
    return _once(_archive("pause", program.parent.name), _make_pause)


def base() -> Path:
    """Return the archive of a small Debian with Python 3, for pods and as a base image."""
    return _once(_archive("worker-base", _digest(DISTRIBUTION, PACKAGES)), _make_base)


def make(
    dockerfile: Path, name: str, *, context: Path, arguments: Mapping[str, str] | None = None
) -> Path:
    """Build a Dockerfile on our base image and return its archive; unchanged steps are cached.

    Behind a TLS-intercepting proxy, ``BENCHPOOL_CLUSTER_CA_BUNDLE`` (or ``PIP_CERT``) is the bundle
    that package installers trust during the build.
    """
    _know_base()
    command = ["bud", "--isolation", "chroot", "--layers", "--tag", name]
    given = {"BASE_IMAGE": BASE} | dict(arguments or {})
    bundle = os.environ.get("BENCHPOOL_CLUSTER_CA_BUNDLE") or os.environ.get("PIP_CERT")
    if bundle:
        command += ["--volume", f"{bundle}:{HOST_BUNDLE}:ro"]
        given["PIP_CERT"] = HOST_BUNDLE
    for key, value in given.items():
        command += ["--build-arg", f"{key}={value}"]
    output = buildah(*command, "--file", str(dockerfile), str(context))
    archive = _archive(name.replace("/", "_").replace(":", "_"), output.split()[-1])
    if not archive.exists():
        _push(name, archive)
    return archive


def load(archive: Path, name: str, sockets: Iterable[Path]) -> None:
    """Import an archive under a name into each containerd; pods then use it without pulling.

    A name in the archive itself is left out. If it were the same name, it would be overwritten
    during the import, and its previous target would be removed.
    """

    def give(socket: Path) -> str:
        command = ["ctr", "--address", str(socket), "--connect-timeout", CONNECT_TIMEOUT]
        command += ["--namespace", "k8s.io", "images", "import"]
        return _run([*command, "--base-name", "left.out/all", "--index-name", name, str(archive)])

    with ThreadPoolExecutor() as pool:
        list(pool.map(give, sockets))


def _once(archive: Path, make_it: Callable[[Path], None]) -> Path:
    if not archive.exists():
        with _alone():
            if not archive.exists():
                debian.need(debian.IMAGES)
                make_it(archive)
    return archive


def _make_pause(archive: Path) -> None:
    with _container("scratch") as container:
        buildah("copy", container, str(build.find("pause")), "/pause")
        buildah("config", "--entrypoint", '["/pause"]', container)
        _commit(container, PAUSE, archive)


def _make_base(archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=_folder()) as folder:
        root = Path(folder) / "root"
        _debootstrap(root)
        with _container("scratch") as container:
            buildah("copy", container, str(root), "/")
            buildah("config", "--cmd", "/bin/bash", "--env", "LANG=C.UTF-8", container)
            _commit(container, BASE, archive)


def _debootstrap(root: Path) -> None:
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", DISTRIBUTION]
    _run([*command, str(root)])
    for part in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"):
        shutil.rmtree(root / part, ignore_errors=True)
        (root / part).mkdir(parents=True)
    (root / "var/lib/apt/lists/partial").mkdir()
    (root / "var/cache/apt/archives/partial").mkdir()


def _know_base() -> None:
    archive = base()
    known = subprocess.run([*_tool(), "inspect", "--type", "image", BASE], capture_output=True)
    if known.returncode:
        image = buildah("pull", f"oci-archive:{archive}").split()[-1]
        buildah("tag", image, BASE)


@contextmanager
def _container(image: str) -> Iterator[str]:
    container = buildah("from", image).strip()
    try:
        yield container
    finally:
        buildah("rm", container)


def _commit(container: str, name: str, archive: Path) -> None:
    buildah("commit", container, name)
    _push(name, archive)


def _push(name: str, archive: Path) -> None:
    half = archive.with_suffix(".half")
    half.unlink(missing_ok=True)
    buildah("push", name, f"oci-archive:{half}:{name}")
    half.rename(archive)


def buildah(*words: str) -> str:
    """Run ``buildah`` on the storage of our images and return its output."""
    return _run([*_tool(), *words])


def _tool() -> list[str]:
    driver = _driver()
    root = _folder() / f"storage-{driver}"
    where = ["--root", str(root), "--runroot", str(_folder() / f"running-{driver}")]
    # buildah's mounts of an image disappear with each of its commands
    tool = ["unshare", "--mount", "--propagation", "private", "buildah"]
    return [*tool, *where, "--storage-driver", driver]


def _driver() -> str:
    """Return the storage driver: overlay, or vfs (copies) if the cache itself is on an overlay."""
    return "vfs" if "overlay" in _run(["stat", "-f", "-c", "%T", str(_folder())]) else "overlay"


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CannotMake(f"{' '.join(command)} failed:\n{(done.stderr + done.stdout)[-3000:]}")
    return done.stdout


def _archive(name: str, content: str) -> Path:
    return _folder() / f"{name}-{content[:16]}.tar"


def _folder() -> Path:
    folder = places.cache() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _digest(*words: str) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process at a time build the shared images."""
    with (_folder() / "making").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
