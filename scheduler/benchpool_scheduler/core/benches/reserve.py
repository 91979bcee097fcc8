"""On which nodes the GPUs lie that are kept for benches, and which of them are wanted now (R3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BenchReserve:
    """The GPUs that train must leave free, by node; nodes without any are left out.

    Attributes:
        kept: All of them. ``called``: those that were lent and are wanted back now.
    """

    kept: Mapping[str, int] = field(default_factory=dict)
    called: Mapping[str, int] = field(default_factory=dict)


def lay_out(
    gpus: int,
    nodes: Iterable[str],
    usable: Callable[[str], int],
    wanted: Mapping[str, int],
    *,
    lends: bool,
) -> BenchReserve:
    """Choose the nodes that keep GPUs free: first those where servers wait, then one by one.

    Args:
        gpus: How many are kept in all.
        nodes: Those that serve benches, in the order in which they are filled.
        usable: Says of a node how many whole GPUs work and are not leased.
        wanted: By node, how many GPUs servers in line wait for.
        lends: Idle reserved GPUs are lent to jobs that can be paused.

    >>> there = {"a": 4, "b": 4}
    >>> lay_out(5, there, there.__getitem__, {}, lends=False).kept
    {'a': 4, 'b': 1}
    >>> lay_out(5, there, there.__getitem__, {"b": 2}, lends=True)
    BenchReserve(kept={'b': 2, 'a': 3}, called={'b': 2})
    """
    kept: dict[str, int] = {}
    serving = dict.fromkeys(nodes, gpus)
    first = ((node, number) for node, number in wanted.items() if node in serving)
    for node, most in (*first, *serving.items()):
        if gpus <= 0:
            break
        already = kept.get(node, 0)
        more = min(gpus, most, usable(node) - already)
        if more > 0:
            kept[node] = already + more
            gpus -= more
    called = {node: min(number, kept.get(node, 0)) for node, number in wanted.items()}
    return BenchReserve(kept, {n: number for n, number in called.items() if number and lends})
