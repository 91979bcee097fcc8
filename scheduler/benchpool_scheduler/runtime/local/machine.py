"""This machine as a node: its processor cores, its memory, and the links of its GPUs.

Pure except for the system's facts about memory and processors. ``gpus`` queries the driver.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchpool_scheduler.runtime import NodeFacts

WORD_BITS = 64
GIB = 1024**3

NVLINK = 10
"""Closeness per NVLink between two GPUs; larger than any path over PCIe."""

PCIE: Mapping[int, int] = {0: 6, 10: 5, 20: 4, 30: 3, 40: 2, 50: 1}
"""Closeness by the driver's level of the nearest common ancestor.

The levels are one board, one switch, several switches, one host bridge, one NUMA node, the whole
machine.
"""


@dataclass(frozen=True, slots=True)
class GpuLinks:
    """Links of GPUs, in the order of ``gpus``; empty if unknown (R12).

    Attributes:
        links: Closeness of each pair; larger is closer. ``sockets``: CPU socket of each GPU.
    """

    gpus: tuple[str, ...] = ()
    links: tuple[tuple[int, ...], ...] = ()
    sockets: tuple[int, ...] = ()


def closeness(ancestor: int | None, nvlinks: int) -> int:
    """Return the closeness of two GPUs: NVLinks first, then the path over PCIe.

    >>> closeness(50, nvlinks=4) > closeness(10, nvlinks=0) > closeness(50, nvlinks=0)
    True
    >>> closeness(None, nvlinks=0)
    0
    """
    return NVLINK * nvlinks + (0 if ancestor is None else PCIE.get(ancestor, 0))


def nvlinks_between(peers: Mapping[str, Mapping[str, int]], one: str, other: str) -> int:
    """Return the number of NVLinks that join two GPUs, directly or through a switch.

    Args:
        peers: Number of a GPU's links by the address of their other end, by the GPU's bus address.

    >>> peers = {"a": {"b": 2, "switch": 4}, "b": {"a": 2, "switch": 6}, "c": {}}
    >>> nvlinks_between(peers, "a", "b"), nvlinks_between(peers, "a", "c")
    (6, 0)
    """
    mine, theirs = peers.get(one, {}), peers.get(other, {})
    switches = (mine.keys() & theirs.keys()) - peers.keys()
    return mine.get(other, 0) + sum(min(mine[at], theirs[at]) for at in switches)


def first_core(affinity: Iterable[int]) -> int | None:
    """Return the first processor of a mask, given as words of 64 bits; None for none.

    >>> first_core([0, 0b100]), first_core([0])
    (66, None)
    """
    for number, word in enumerate(affinity):
        if word:
            return number * WORD_BITS + (word & -word).bit_length() - 1
    return None


def socket_of(core: int | None, folder: Path = Path("/sys/devices/system/cpu")) -> int | None:
    """Return the CPU socket of a processor core, or None if unknown."""
    if core is None:
        return None
    try:
        return int((folder / f"cpu{core}" / "topology" / "physical_package_id").read_text())
    except (OSError, ValueError):
        return None


def memory_gib() -> float:
    """Return the machine's memory, in GiB."""
    return psutil.virtual_memory().total / GIB


def cores() -> int:
    """Return the number of cores that this process, and so its workers, may use."""
    return len(os.sched_getaffinity(0))


def facts(name: str, links: GpuLinks, known: Sequence[str]) -> NodeFacts:
    """Return this machine as a node.

    Args:
        links: Links as the driver reports them; ignored unless all their GPUs are known.
        known: UUIDs of the machine's GPUs.
    """
    usable = bool(links.gpus) and set(links.gpus) <= set(known)
    kept = links if usable else GpuLinks()
    return NodeFacts(
        name=name,
        labels={"kubernetes.io/hostname": platform.node()},
        cpus=float(cores()),
        memory_gib=memory_gib(),
        gpus=kept.gpus,
        links=kept.links,
        sockets=kept.sockets,
    )
