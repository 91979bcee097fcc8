"""Fill gaps in the record of a GPU from the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from benchpool_scheduler.accounting.classes import GpuUseKind
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval

UNRECORDED = GpuHolder(GpuUseKind.UNRECORDED)


def bridged(last: GpuInterval, now: float, held: Iterable[GpuInterval]) -> Iterator[GpuInterval]:
    """Yield intervals from the end of a GPU's record until now, without a gap.

    Args:
        last: Its newest recorded interval. ``now``: epoch seconds.
        held: Intervals of benches and workers by the ledger; they do not overlap (R1).

    >>> last = GpuInterval("g", "n", "H200", 0.0, 10.0, GpuHolder(GpuUseKind.FREE))
    >>> job = GpuInterval("g", "n", "H200", 20.0, 30.0, GpuHolder(GpuUseKind.TRAINING, job="j"))
    >>> [(it.begin, it.end, it.occupant.occupation.value) for it in bridged(last, 40.0, [job])]
    [(10.0, 20.0, 'unrecorded'), (20.0, 30.0, 'training'), (30.0, 40.0, 'unrecorded')]
    """
    at = last.end
    for one in sorted(held, key=lambda it: it.begin):
        begin, end = max(at, one.begin), min(now, one.end)
        if end <= begin:
            continue
        if begin > at:
            yield replace(last, begin=at, end=begin, occupant=UNRECORDED)
        yield replace(last, begin=begin, end=end, occupant=one.occupant)
        at = end
    if now > at:
        yield replace(last, begin=at, end=now, occupant=UNRECORDED)
