"""The cgroup of a node's pods, under every kind of hierarchy: v1, v2 and both together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
SHARES = {"cpu.shares": "40000", "cpu.weight": "4000"}
"""CPU shares of a node's pods together; otherwise they would count as one process."""


def create(name: str) -> None:
    """Create a group.

    In v1 a new cpuset is empty and accepts no process until it has its parent's values.
    """
    for tree in trees():
        group = tree / name
        group.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (tree / "cpuset.cpus").exists() and tree.name == "cpuset":
                (group / file).write_text((tree / file).read_text())
        for file, shares in SHARES.items():
            if (group / file).exists():
                (group / file).write_text(shares)


def members(name: str) -> Iterator[int]:
    """Yield the IDs of all processes in a group and below."""
    for tree in trees():
        for file in (tree / name).glob("**/cgroup.procs"):
            with suppress(OSError):
                yield from (int(line) for line in file.read_text().split())


def remove(name: str) -> None:
    """Remove an empty group with its subgroups."""
    for tree in trees():
        for folder, _, _ in os.walk(tree / name, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()


def trees() -> list[Path]:
    """Return the roots of all hierarchies of this machine."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return [tree for tree in ROOT.iterdir() if tree.is_dir() and not tree.is_symlink()]
