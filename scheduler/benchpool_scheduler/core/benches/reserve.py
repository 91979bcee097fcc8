"""Distribution of the GPUs kept for benches over the nodes, and their reclaim (R3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BenchReserve:
    """GPUs that train must leave free, by node. Nodes without any are left out.

    Attributes:
        kept: All kept GPUs.
        called: GPUs that waiting servers reclaim from jobs, where idle reserved GPUs are lent.
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
    """Choose the nodes that keep GPUs free: first nodes where servers wait, then in order.

    Args:
        gpus: Number of GPUs to keep in total.
        nodes: Nodes that serve benches, in the order in which they are filled.
        usable: Returns the number of whole GPUs of a node that work and are not leased.
        wanted: Number of GPUs that queued servers wait for, by node.
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
