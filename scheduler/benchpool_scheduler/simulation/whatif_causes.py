"""Causes of longer waits and more pauses on one side of a what-if, counted from its two replays."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from benchpool_scheduler.simulation.replay.engine import Run

Pair = tuple[Run, Run]
"""Runs of one job in the first and in the second replay."""


class PauseKind(Enum):
    """Kind of a pause in the second replay, by the simultaneous state in the first replay."""

    OF_WAITING = "the job that is paused waits"
    OF_ENDED = "it has ended"
    FOR_WAITING = "it runs, and the job that gets the room waits"
    FOR_SERVED = "it runs, and that job runs or has ended"


@dataclass(frozen=True, slots=True)
class PauseCauses:
    """Causes of the pauses in the second replay.

    Attributes:
        before: Pauses in the first replay; ``after`` in the second.
        gpus_before: GPUs that the paused jobs held, in all.
        lost_before: GPU-seconds lost by the pauses.
        kinds: The pauses of the second replay, by their kind.
    """

    before: int
    after: int
    gpus_before: int
    gpus_after: int
    lost_before: float
    lost_after: float
    kinds: Mapping[PauseKind, int]


@dataclass(frozen=True, slots=True)
class WaitCauses:
    """Causes of longer waits in the second replay.

    Attributes:
        jobs: Number of all jobs. ``longer``: jobs that wait longer.
        paused: Of these, jobs that are paused more often. ``later``: other jobs that start later.
        passed: Of the latter, jobs that were overtaken. In the first replay they would have their
            GPUs already, when another job that still waits there holds GPUs in the second.
    """

    jobs: int
    longer: int
    paused: int
    later: int
    passed: int


def pause_causes(pairs: Sequence[Pair]) -> PauseCauses:
    """Return the causes of the pauses of all jobs of both replays, in the order of the trace."""
    was, then = [before for before, _ in pairs], [after for _, after in pairs]
    kinds = Counter(
        _kind(before, None if claimant is None else pairs[claimant][0], at_s)
        for before, after in pairs
        for (_, at_s), claimant in zip(after.held, after.made_way_for, strict=False)
    )
    return PauseCauses(
        before=sum(run.preemptions for run in was),
        after=sum(run.preemptions for run in then),
        gpus_before=sum(run.preemptions * run.job.gpus for run in was),
        gpus_after=sum(run.preemptions * run.job.gpus for run in then),
        lost_before=sum(run.lost_gpu_s for run in was),
        lost_after=sum(run.lost_gpu_s for run in then),
        kinds=kinds,
    )


def _kind(victim: Run, claimant: Run | None, at_s: float) -> PauseKind:
    if _waits(victim, at_s):
        return PauseKind.OF_WAITING
    if at_s > victim.end_s:
        return PauseKind.OF_ENDED
    waits = claimant is not None and _waits_on(claimant, at_s)
    return PauseKind.FOR_WAITING if waits else PauseKind.FOR_SERVED


def wait_causes(pairs: Sequence[Pair], all_pairs: Sequence[Pair]) -> WaitCauses:
    """Return the causes of some jobs' longer waits; ``all_pairs`` covers the whole replay."""
    longer = [(was, then) for was, then in pairs if then.wait_s > was.wait_s]
    calm = [(was, then) for was, then in longer if then.preemptions <= was.preemptions]
    starts = [
        was.first_start_s
        for was, then in calm
        if was.first_start_s is not None
        and then.first_start_s is not None
        and then.first_start_s > was.first_start_s
    ]
    ahead = _merged(sorted(it for pair in all_pairs for it in _ahead(*pair)))
    passed = sum(_is_in(ahead, at_s) for at_s in starts)
    return WaitCauses(len(pairs), len(longer), len(longer) - len(calm), len(starts), passed)


def _waits(run: Run, at_s: float) -> bool:
    """Return whether a job that has not ended holds nothing just before an instant."""
    return at_s <= run.end_s and not any(begin < at_s <= end for begin, end in run.held)


def _waits_on(run: Run, at_s: float) -> bool:
    """Return whether a job that has not ended holds nothing from an instant on."""
    return at_s < run.end_s and not any(begin <= at_s < end for begin, end in run.held)


def _ahead(before: Run, after: Run) -> Iterator[tuple[float, float]]:
    """Yield the spans in which a job runs in the second replay and waits in the first."""
    for begin, end in after.held:
        at = begin
        for other_begin, other_end in before.held:
            if at < min(other_begin, end):
                yield at, min(other_begin, end)
            at = max(at, other_end)


def _merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merge overlapping spans, which are sorted by their begin.

    >>> _merged([(0, 2), (1, 3), (5, 6)])
    [(0, 3), (5, 6)]
    """
    found: list[tuple[float, float]] = []
    for begin, end in spans:
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def _is_in(spans: Sequence[tuple[float, float]], at: float) -> bool:
    place = bisect_right(spans, (at, float("inf"))) - 1
    return place >= 0 and at < spans[place][1]
