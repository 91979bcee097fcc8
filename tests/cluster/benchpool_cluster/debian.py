"""The Debian packages for real nodes and images, installed when they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess

# program -> package
NODES = {
    "containerd": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
IMAGES = {"buildah": "buildah", "debootstrap": "debootstrap"}
NETWORK_PLUGINS = ("/usr/lib/cni/bridge", "containernetworking-plugins")


def need(programs: dict[str, str]) -> None:
    """Install the packages of missing programs."""
    missing = [package for program, package in programs.items() if not shutil.which(program)]
    if programs is NODES and not os.path.exists(NETWORK_PLUGINS[0]):
        missing.append(NETWORK_PLUGINS[1])
    if missing:
        install(missing)


def install(packages: list[str]) -> None:
    """Install packages without their recommendations."""
    settled = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages],
    ):
        done = subprocess.run(command, env=settled, capture_output=True, text=True)
        if done.returncode:
            raise CannotInstall(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")


class CannotInstall(Exception):
    """Error: a missing package cannot be installed here, which needs Debian and root."""
