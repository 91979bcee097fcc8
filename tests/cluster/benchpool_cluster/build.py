"""Find a program of the cluster: given, built before, or built now from its Go module.

A built program stays in the cache under the checksum of its module, so that it is built once per
version. Nothing is started here.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchpool_cluster import places

KUBERNETES = "1.34.4"
VERSION = "k8s.io/component-base/version"
LINKER = (
    f"-s -w -X {VERSION}.gitVersion=v{KUBERNETES} -X {VERSION}.gitMajor=1 -X {VERSION}.gitMinor=34"
)
HELM = "-s -w -X helm.sh/helm/v3/internal/version.version=v3.18.6"
LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Program:
    """Go command: the module folder that pins it, its package and its linker flags."""

    module: str
    package: str
    linker: str = LINKER


PROGRAMS = {
    "etcd": Program("kubernetes", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": Program("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": Program(
        "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"
    ),
    "kube-scheduler": Program("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": Program("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    "kubelet": Program("kubernetes", "k8s.io/kubernetes/cmd/kubelet"),
    "kube-proxy": Program("kubernetes", "k8s.io/kubernetes/cmd/kube-proxy"),
    "coredns": Program("kubernetes", "./coredns"),
    "pause": Program("kubernetes", "./pause"),
    "kwok": Program("tools", "sigs.k8s.io/kwok/cmd/kwok"),
    "local-path-provisioner": Program("tools", "github.com/rancher/local-path-provisioner"),
    "helm": Program("tools", "helm.sh/helm/v3/cmd/helm", HELM),
}


class CannotBuild(Exception):
    """Error: a program is neither given nor built, and this machine cannot build it."""


def find(name: str) -> Path:
    """Return the path of a program; the folder ``KUBEBUILDER_ASSETS`` takes precedence."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given and (Path(given) / name).is_file():
        return Path(given) / name
    built = _cached(name)
    if not built.exists():
        with _alone():
            if not built.exists():
                _build(PROGRAMS[name], built)
    return built


def is_ready(name: str) -> bool:
    """Return whether a program is available without a build."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    return _cached(name).exists() or bool(given and (Path(given) / name).is_file())


def can_build() -> bool:
    """Return whether there is a Go compiler."""
    return shutil.which("go") is not None


def _cached(name: str) -> Path:
    program = PROGRAMS[name]
    folder = places.GO / program.module
    files = [folder / "go.mod", folder / "go.sum"]
    if program.package.startswith("./"):
        files += sorted((folder / program.package).glob("*.go"))
    digest = hashlib.sha256(f"{program}{platform.machine()}".encode())
    for file in files:
        digest.update(file.read_bytes())
    return places.cache() / "bin" / digest.hexdigest()[:16] / name


def _build(program: Program, target: Path) -> None:
    if not can_build():
        raise CannotBuild(
            f"{target.name} is not built yet and there is no Go compiler: install Go 1.26, or set "
            "KUBEBUILDER_ASSETS to a folder of binaries"
        )
    LOG.warning("building %s (once)", target.name)
    began = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_suffix(".half")
    command = ["go", "build", "-p", "2", "-trimpath", "-ldflags", program.linker]
    done = subprocess.run(
        [*command, "-o", str(half), program.package],
        cwd=places.GO / program.module,
        env=os.environ | {"CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise CannotBuild(f"{target.name} does not build:\n{done.stderr[-4000:]}")
    half.rename(target)
    size = target.stat().st_size / 1e6
    LOG.warning("built %s: %.0f MB in %.0f s", target.name, size, time.monotonic() - began)


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process build at a time: two would take twice as long."""
    places.cache().mkdir(parents=True, exist_ok=True)
    with (places.cache() / "building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
