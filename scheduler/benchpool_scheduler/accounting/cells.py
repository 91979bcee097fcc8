"""The last hour of every GPU in a few cells: its holder and its activity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval, MeasuredUse


@dataclass(frozen=True, slots=True)
class GpuCell:
    """One GPU over one step of time.

    Attributes:
        begin: Epoch seconds.
        occupant: Its holder for the longest part of the step; None if nothing is recorded.
        activity: Share of the measured time in which a kernel ran, 0 to 1; None if nothing was
            measured.
        simulated: Nothing was measured: the GPU is simulated.
    """

    begin: float
    occupant: GpuHolder | None
    activity: float | None
    simulated: bool


def cells(
    history: Iterable[GpuInterval],
    activity: Iterable[MeasuredUse],
    begins: Sequence[float],
    step_s: float,
) -> Mapping[str, Sequence[GpuCell]]:
    """Return the cells of every GPU that has any record, in the order of ``begins``.

    Args:
        begins: Where steps begin, epoch seconds, at whole multiples of the step, as buckets do.

    >>> from benchpool_scheduler.accounting.classes import GpuUseKind
    >>> from benchpool_scheduler.accounting.gpu_intervals import GpuInterval
    >>> job = GpuHolder(GpuUseKind.TRAINING, user="joe", job="j")
    >>> history = [GpuInterval("g", "n", "H200", 0.0, 900.0, job)]
    >>> [it.occupant and it.occupant.user for it in cells(history, (), (0, 600, 1200), 600)["g"]]
    ['joe', 'joe', None]
    """
    held = _held(history, begins, step_s)
    measured = _measured(activity, begins, step_s)
    return {
        gpu: [_cell(begin, held[gpu].get(begin), measured[gpu].get(begin)) for begin in begins]
        for gpu in sorted({*held, *measured})
    }


_Sums = tuple[float, float, bool]
"""Measured seconds, the part of them in which a kernel ran, and whether that is simulated."""


def _cell(begin: float, held: Mapping[GpuHolder, float] | None, sums: _Sums | None) -> GpuCell:
    longest = max(held, key=lambda one: held[one]) if held else None
    covered_s, active_s, simulated = sums or (0.0, 0.0, False)
    share = min(1.0, active_s / covered_s) if covered_s > 0 else None
    return GpuCell(begin, longest, share, simulated)


def _held(
    history: Iterable[GpuInterval], begins: Sequence[float], step_s: float
) -> Mapping[str, Mapping[float, dict[GpuHolder, float]]]:
    """Return the seconds of each holder on each GPU in each step."""
    found: dict[str, dict[float, dict[GpuHolder, float]]] = defaultdict(dict)
    for one in history:
        for begin in begins:
            shared_s = min(one.end, begin + step_s) - max(one.begin, begin)
            if shared_s > 0:
                step = found[one.gpu].setdefault(begin, {})
                step[one.occupant] = step.get(one.occupant, 0.0) + shared_s
    return found


def _measured(
    activity: Iterable[MeasuredUse], begins: Sequence[float], step_s: float
) -> Mapping[str, Mapping[float, _Sums]]:
    """Return the measurements of each GPU in each step; a bucket counts where it begins."""
    found: dict[str, dict[float, _Sums]] = defaultdict(dict)
    known = set(begins)
    for bucket in activity:
        begin = bucket.begin // step_s * step_s
        if begin in known:
            covered_s, active_s, simulated = found[bucket.gpu].get(begin, (0.0, 0.0, False))
            found[bucket.gpu][begin] = (
                covered_s + bucket.covered_s,
                active_s + bucket.active_s,
                simulated or bucket.simulated,
            )
    return found
