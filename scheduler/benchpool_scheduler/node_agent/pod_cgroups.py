"""The cgroups (v2) in which the kernel counts the use of each pod of this node.

The kubelet names the cgroup of a pod by its UID, in two ways. Its own driver uses
``kubepods/burstable/podUID``. The systemd driver uses
``kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice``, with ``_`` for ``-`` in
the UID.

Source: Kubernetes' documentation, "Configuring a cgroup driver".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

DEPTH = 5
POD = re.compile(
    r"(?:^|-)pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$"
)
ABOVE = re.compile(r"kubepods|kubelet|^(?:burstable|besteffort|guaranteed)$")
"""Cgroups that may contain those of pods; no others are searched."""


def pod_of(name: str) -> str | None:
    """Return the UID of the pod whose cgroup has this name, or None.

    >>> pod_of("kubepods-burstable-pod0a1b2c3d_0000_1111_2222_333344445555.slice")
    '0a1b2c3d-0000-1111-2222-333344445555'
    >>> pod_of("burstable")
    """
    found = POD.search(name)
    return found[1].replace("_", "-") if found else None


def find(root: Path) -> Mapping[str, Path]:
    """Return the cgroup of each pod by its UID; empty if there are none."""
    return dict(_below(root, DEPTH))


def _below(folder: Path, depth: int) -> Iterator[tuple[str, Path]]:
    try:
        inside = [it.name for it in os.scandir(folder) if it.is_dir(follow_symlinks=False)]
    except OSError:
        return  # gone meanwhile, or not there
    for name in inside:
        pod = pod_of(name)
        if pod is not None:
            yield pod, folder / name
        elif depth and ABOVE.search(name):
            yield from _below(folder / name, depth - 1)
