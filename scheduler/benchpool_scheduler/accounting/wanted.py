"""Free GPUs on which waiting jobs would have fitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ask:
    """Request of a waiting job that only the scheduler holds back.

    Attributes:
        gpus: GPUs per worker. ``workers``: the fewest with which the job starts.
        models: Accepted GPU models; empty for any.
    """

    gpus: int
    workers: int
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FreeGpu:
    """A GPU without a holder or reservation."""

    uuid: str
    model: str


def wanted(free: Mapping[str, Sequence[FreeGpu]], asks: Iterable[Ask]) -> frozenset[str]:
    """Return the free GPUs that these jobs would have used, each job entirely or not.

    Args:
        free: By node, in an order that stays the same while they are free.
        asks: The job that waits longest first.

    >>> free = {"n": [FreeGpu("a", "H200"), FreeGpu("b", "H200")], "m": [FreeGpu("c", "A100")]}
    >>> sorted(wanted(free, [Ask(1, 1)])), sorted(wanted(free, [Ask(2, 2)]))
    (['a'], [])
    >>> sorted(wanted(free, [Ask(2, 1), Ask(1, 1, ("A100",))]))
    ['a', 'b', 'c']
    """
    left = {node: list(gpus) for node, gpus in free.items()}
    remaining = sum(map(len, left.values()))
    found: set[str] = set()
    for ask in asks:
        if remaining == 0:
            break
        if 0 < ask.gpus * ask.workers <= remaining:
            given = _placed(left, ask)
            found.update(given)
            remaining -= len(given)
    return frozenset(found)


def _placed(left: Mapping[str, list[FreeGpu]], ask: Ask) -> list[str]:
    """Remove and return the GPUs of a job if all its workers fit, else an empty list."""
    taken: list[tuple[str, list[FreeGpu]]] = []
    workers = ask.workers
    for node, gpus in left.items():
        fitting = [gpu for gpu in gpus if not ask.models or gpu.model in ask.models]
        here = min(workers, len(fitting) // ask.gpus)
        if here:
            taken.append((node, fitting[: here * ask.gpus]))
            workers -= here
        if not workers:
            break
    if workers:
        return []
    for node, gpus in taken:
        left[node][:] = [gpu for gpu in left[node] if gpu not in gpus]
    return [gpu.uuid for _, gpus in taken for gpu in gpus]
