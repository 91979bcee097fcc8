"""Assign every second of a recorded history to one class.

A second without a holder, or before its worker runs, has its class from the record alone. For a
held second, samples of its holder show whether a kernel ran. A bucket of samples has the total time
of kernels but not their position. So its seconds are spread evenly over the time in it in which its
holder had the GPU.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchpool_scheduler.accounting.classes import IDLE, UNHELD, GpuUseKind
from benchpool_scheduler.accounting.gpu_intervals import (
    GpuHolder,
    GpuInterval,
    Loss,
    MeasuredHolder,
    MeasuredUse,
)
from benchpool_scheduler.contract.use import UseClass

STARTING_S = 15 * 60.0
"""Maximum time without a first kernel that counts as starting instead of idle, in seconds."""


@dataclass(slots=True)
class Entry:
    """One interval of the history, cut to the range, with its seconds by class.

    Attributes:
        seconds: Their sum is the length of the interval.
        measurable_s: Seconds in which a bench or a running worker held the GPU. ``measured_s``: the
            part that samples cover. ``simulated_s``: the part of that from simulated GPUs.
        efficient_s: Seconds in which the multiprocessors were active, if measured. ``of_s``: the
            seconds in which a kernel ran in that time.
        energy_j: Joules, of the measured time.
    """

    occupancy: GpuInterval
    seconds: dict[UseClass, float] = field(default_factory=lambda: defaultdict(float))
    measurable_s: float = 0.0
    measured_s: float = 0.0
    simulated_s: float = 0.0
    efficient_s: float = 0.0
    of_s: float = 0.0
    energy_j: float = 0.0


@dataclass(slots=True)
class _Piece:
    """Part of an interval whose seconds are all treated alike.

    Attributes:
        fixed: Their class if samples do not change it. ``idle``: their class without a kernel;
            None if no kernel could run.
        counts: The piece lies in the requested range.
        covered_s: Seconds covered by samples.
    """

    entry: Entry
    begin: float
    end: float
    fixed: UseClass | None
    idle: UseClass | None
    counts: bool
    covered_s: float = 0.0


def divide(
    history: Iterable[GpuInterval],
    activity: Iterable[MeasuredUse],
    losses: Iterable[Loss],
    begin: float,
    end: float,
) -> list[Entry]:
    """Return the intervals of a history between two instants with their seconds by class.

    Args:
        history: Intervals that reach into the range, and those of ``STARTING_S`` before it.
        activity: Buckets of samples of the same time, one for each holder in a step.
        losses: Work that pauses discarded.
        begin, end: The range, epoch seconds. Intervals are cut at its edges.
    """
    of_gpu: dict[str, list[GpuInterval]] = defaultdict(list)
    for one in history:
        if one.end > one.begin:
            of_gpu[one.gpu].append(one)
    buckets: dict[str, list[MeasuredUse]] = defaultdict(list)
    for bucket in activity:
        buckets[bucket.gpu].append(bucket)
    lost: dict[tuple[str, int], list[Loss]] = defaultdict(list)
    for loss in losses:
        lost[loss.job, loss.attempt].append(loss)
    found: list[Entry] = []
    for gpu in sorted(of_gpu):
        intervals = list(_in_turn(of_gpu[gpu]))
        measured = sorted(buckets[gpu], key=lambda one: one.begin)
        found += _divide_one(intervals, measured, lost, (begin, end))
    return found


def _in_turn(intervals: Iterable[GpuInterval]) -> Iterator[GpuInterval]:
    """Yield intervals by begin, without time that a clock set back counted twice."""
    until = -math.inf
    for one in sorted(intervals, key=lambda each: each.begin):
        if one.end > until:
            yield one if one.begin >= until else replace(one, begin=until)
            until = one.end


def _divide_one(
    intervals: Sequence[GpuInterval],
    buckets: Sequence[MeasuredUse],
    lost: Mapping[tuple[str, int], Sequence[Loss]],
    span: tuple[float, float],
) -> Iterator[Entry]:
    """Yield the entries of one GPU that lie in the range."""
    pieces: list[_Piece] = []
    first = _first_kernels(buckets)
    for one in intervals:
        discarded = lost.get((one.occupant.job, one.occupant.attempt), ())
        pieces += _pieces(Entry(one), _started(one, first), discarded, span)
    _measure(pieces, buckets)
    for piece in pieces:
        if piece.counts:
            _add_unmeasured(piece)
    seen: dict[int, Entry] = {id(piece.entry): piece.entry for piece in pieces if piece.counts}
    yield from seen.values()


def _first_kernels(buckets: Sequence[MeasuredUse]) -> dict[tuple[str, int], float]:
    """Return when each attempt had its first kernel on a GPU, as far as the buckets show it."""
    found: dict[tuple[str, int], float] = {}
    for bucket in buckets:
        if bucket.active_s > 0 and bucket.holder.job is not None:
            found.setdefault((bucket.holder.job, bucket.holder.attempt or 0), bucket.begin)
    return found


def _started(one: GpuInterval, first: Mapping[tuple[str, int], float]) -> float:
    """Return when starting ended: at the first kernel, or after ``STARTING_S``."""
    if one.occupant.occupation is not GpuUseKind.TRAINING:
        return one.begin
    kernel = first.get((one.occupant.job, one.occupant.attempt), math.inf)
    return min(one.end, one.begin + STARTING_S, max(one.begin, kernel))


def _pieces(
    entry: Entry, started: float, discarded: Sequence[Loss], span: tuple[float, float]
) -> Iterator[_Piece]:
    """Cut an interval where its class may change."""
    one = entry.occupancy
    occupation = one.occupant.occupation
    edges = {one.begin, one.end, started, *span}
    for loss in discarded:
        edges |= {loss.begin, loss.end}
    inside = sorted(edge for edge in edges if one.begin <= edge <= one.end)
    for begin, end in itertools.pairwise(inside):
        fixed, idle = UNHELD.get(occupation), IDLE.get(occupation)
        if idle is not None and begin < started:
            idle = UseClass.STARTING
        elif idle is not None and any(it.begin <= begin < it.end for it in discarded):
            fixed = UseClass.LOST
        counts = span[0] <= begin and end <= span[1]
        yield _Piece(entry, begin, end, fixed, idle, counts)


def _measure(pieces: Sequence[_Piece], buckets: Sequence[MeasuredUse]) -> None:
    """Assign the measurements to the pieces; both are sorted by begin."""
    at = 0
    for bucket in buckets:
        begin, end = bucket.begin, bucket.begin + bucket.span_s
        while at < len(pieces) and pieces[at].end <= begin:
            at += 1
        over: list[tuple[_Piece, float]] = []
        for piece in pieces[at:]:
            if piece.begin >= end:
                break
            if _is_of(bucket.holder, piece.entry.occupancy.occupant):
                over.append((piece, min(end, piece.end) - max(begin, piece.begin)))
        _give(bucket, over)


def _is_of(holder: MeasuredHolder, occupant: GpuHolder) -> bool:
    if holder.job is not None:
        return holder.job == occupant.job and holder.attempt == occupant.attempt
    return not occupant.job and (holder.bench or "") == occupant.bench


def _give(bucket: MeasuredUse, over: Sequence[tuple[_Piece, float]]) -> None:
    """Divide one bucket among the pieces of its holder, which overlap it by the given seconds."""
    held_s = sum(shared_s for _, shared_s in over)
    if held_s <= 0:
        return  # the holder at the last sample held it for less than one sample
    covered_s = min(max(0.0, bucket.covered_s), held_s)
    active = min(1.0, max(0.0, bucket.active_s) / covered_s) if covered_s > 0 else 0.0
    for piece, shared_s in over:
        part = shared_s / held_s
        known_s = max(0.0, min(covered_s * part, piece.end - piece.begin - piece.covered_s))
        piece.covered_s += known_s
        if piece.counts:
            _count(bucket, piece, part, known_s, known_s * active)


def _count(
    bucket: MeasuredUse, piece: _Piece, part: float, known_s: float, computing_s: float
) -> None:
    """Add the measurements of a piece; ``part`` is its share of the bucket."""
    entry = piece.entry
    entry.energy_j += (bucket.energy_j or 0.0) * part
    if piece.idle is None:
        return
    entry.measured_s += known_s
    entry.simulated_s += known_s if bucket.simulated else 0.0
    if bucket.sm_covered_s > 0 and bucket.covered_s > 0:
        entry.efficient_s += bucket.sm_active_s * part
        entry.of_s += computing_s * min(1.0, bucket.sm_covered_s / bucket.covered_s)
    if piece.fixed is None:
        entry.seconds[UseClass.COMPUTING] += computing_s
        entry.seconds[piece.idle] += known_s - computing_s


def _add_unmeasured(piece: _Piece) -> None:
    length_s = piece.end - piece.begin
    seconds = piece.entry.seconds
    if piece.idle is not None:
        piece.entry.measurable_s += length_s
    if piece.fixed is not None:
        seconds[piece.fixed] += length_s
    elif length_s > piece.covered_s:
        seconds[UseClass.NOT_MEASURED] += length_s - piece.covered_s
