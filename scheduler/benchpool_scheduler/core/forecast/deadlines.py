"""Check whether a job will end by its deadline, from its expected start and run time.

A deadline changes no scheduling order. It is compared with the range in which the job may end. The
range is the published start plus the run time of similar jobs, or the end by the job's own pace. If
neither is known, the result is "unknown". These functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_scheduler.phrases import count, duration

PACE_PART = 0.1
"""Relative uncertainty of an end computed from the job's own pace."""


class DeadlineState(StrEnum):
    """State of a job against its deadline."""

    WILL_BE_MET = "will-be-met"
    """It is expected to end in time."""
    AT_RISK = "at-risk"
    """It may end in time or too late."""
    WILL_BE_MISSED = "will-be-missed"
    """It is expected to end too late."""
    CANNOT_BE_TOLD = "cannot-be-told"
    """Its start or its run time is unknown."""
    MET = "met"
    """It succeeded in time."""
    MISSED = "missed"
    """It had not succeeded by its deadline."""


class Phase(Enum):
    """Phase of a job, as far as it matters for a deadline."""

    OPEN = auto()  # it has not ended
    DONE = auto()  # it succeeded
    GONE = auto()  # it failed or was cancelled


class Falls(Enum):
    """Position of the expected end relative to the deadline."""

    BEFORE = auto()  # the whole range
    AROUND = auto()  # part of the range
    AFTER = auto()  # the whole range
    UNKNOWN = auto()
    OVER = auto()  # the deadline has passed


STATES: Mapping[tuple[Phase, Falls], DeadlineState] = {
    (Phase.OPEN, Falls.BEFORE): DeadlineState.WILL_BE_MET,
    (Phase.OPEN, Falls.AROUND): DeadlineState.AT_RISK,
    (Phase.OPEN, Falls.AFTER): DeadlineState.WILL_BE_MISSED,
    (Phase.OPEN, Falls.UNKNOWN): DeadlineState.CANNOT_BE_TOLD,
    (Phase.OPEN, Falls.OVER): DeadlineState.MISSED,
    (Phase.DONE, Falls.BEFORE): DeadlineState.MET,
    (Phase.DONE, Falls.AFTER): DeadlineState.MISSED,
    (Phase.GONE, Falls.BEFORE): DeadlineState.MISSED,
    (Phase.GONE, Falls.AFTER): DeadlineState.MISSED,
}

LOST = frozenset({DeadlineState.WILL_BE_MISSED, DeadlineState.MISSED})
"""States of a missed or probably missed deadline. The job's owner is notified."""


class LengthBasis(Enum):
    """Source of a job's remaining run time."""

    LEARNED = auto()  # run times of similar jobs
    PACE = auto()  # progress over time
    TIME_LIMIT = auto()  # an upper bound only
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class RunLength:
    """Remaining run time of a job, in seconds.

    Attributes:
        most_s: Upper bound, or None if unknown.
        runs: Number of runs from which it was learned.
    """

    least_s: float = 0.0
    most_s: float | None = None
    basis: LengthBasis = LengthBasis.NOTHING
    runs: int = 0


@dataclass(frozen=True, slots=True)
class RunStart:
    """When a job starts or resumes, as instants. None means an unknown bound.

    ``waits``: it has no GPUs now.
    """

    earliest_s: float | None
    latest_s: float | None
    waits: bool = True


@dataclass(frozen=True, slots=True)
class Judgement:
    """A state, a sentence, and the instants between which the job ends, if known."""

    state: DeadlineState
    text: str
    earliest_s: float | None = None
    latest_s: float | None = None


def length_of(
    learned: Expectation | None,
    ran_s: float,
    limit_left_s: float | None,
    pace_left_s: float | None = None,
) -> RunLength:
    """Return the remaining run time of a job.

    Args:
        learned: Expected run time of all its attempts.
        ran_s: Run time so far, in seconds.
        limit_left_s: Seconds until its time limit, or None without one.
        pace_left_s: Seconds left at its own pace, or None if unknown.

    >>> length_of(None, 0.0, 600.0)
    RunLength(least_s=0.0, most_s=600.0, basis=<LengthBasis.TIME_LIMIT: 3>, runs=0)
    >>> length_of(Expectation(60.0, 90.0, 600.0, "pool", 9.4), 50.0, None).most_s
    550.0
    """
    if pace_left_s is not None:
        left_s = max(0.0, pace_left_s)
        least, most = left_s * (1 - PACE_PART), left_s * (1 + PACE_PART)
        return RunLength(least, most, LengthBasis.PACE)
    if learned is not None:
        least, most = max(0.0, learned.low_s - ran_s), max(0.0, learned.high_s - ran_s)
        return RunLength(least, most, LengthBasis.LEARNED, round(learned.examples))
    if limit_left_s is not None:
        return RunLength(0.0, max(0.0, limit_left_s), LengthBasis.TIME_LIMIT)
    return RunLength()


def judge_open(deadline_s: float, start: RunStart, length: RunLength, now_s: float) -> Judgement:
    """Return the state of an unfinished job against its deadline. All times are instants.

    >>> start = RunStart(100.0, 400.0)
    >>> judge_open(7600.0, start, RunLength(600.0, 1200.0, LengthBasis.LEARNED, 14), 0.0).text
    'As things stand it ends 1 h 40 min or more before its deadline: learned from 14 runs.'
    >>> judge_open(7600.0, start, RunLength(), 0.0).state.value
    'cannot-be-told'
    """
    if now_s > deadline_s:
        return Judgement(STATES[Phase.OPEN, Falls.OVER], "It did not end by its deadline.")
    first = max(now_s, now_s if start.earliest_s is None else start.earliest_s) + length.least_s
    last = None
    if start.latest_s is not None and length.most_s is not None:
        last = max(first, start.latest_s + length.most_s)
    falls = _falls(deadline_s, first, last, length)
    state = STATES[Phase.OPEN, falls]
    text = _text(falls, deadline_s, first, last, start, length)
    if falls is Falls.UNKNOWN:
        return Judgement(state, text)
    known = length.basis in (LengthBasis.LEARNED, LengthBasis.PACE)
    return Judgement(state, text, first if known else None, last)


def judge_ended(deadline_s: float, ended_s: float, *, well: bool) -> Judgement:
    """Return the state of an ended job against its deadline.

    >>> judge_ended(3600.0, 1800.0, well=True).text
    'It ended 30 min before its deadline.'
    """
    falls = Falls.BEFORE if ended_s <= deadline_s else Falls.AFTER
    state = STATES[Phase.DONE if well else Phase.GONE, falls]
    away = duration(abs(deadline_s - ended_s))
    if not well:
        return Judgement(state, "It did not end well by its deadline.")
    side = "before" if falls is Falls.BEFORE else "after"
    return Judgement(state, f"It ended {away} {side} its deadline.")


def _falls(deadline_s: float, first: float, last: float | None, length: RunLength) -> Falls:
    if first > deadline_s:
        return Falls.AFTER
    if last is not None and last <= deadline_s:
        return Falls.BEFORE
    # A time limit alone is no risk: most jobs end long before theirs.
    if last is None or length.basis is LengthBasis.TIME_LIMIT:
        return Falls.UNKNOWN
    return Falls.AROUND


def _text(
    falls: Falls,
    deadline_s: float,
    first: float,
    last: float | None,
    start: RunStart,
    length: RunLength,
) -> str:
    basis = _basis(length)
    if falls is Falls.UNKNOWN:
        return _not_known(deadline_s, last, start, length)
    if falls is Falls.AFTER:
        if length.basis in (LengthBasis.TIME_LIMIT, LengthBasis.NOTHING):
            return "As things stand it does not even start before its deadline."
        after = duration(first - deadline_s)
        return f"As things stand it ends {after} or more after its deadline: {basis}."
    if falls is Falls.AROUND and last is not None:
        before, after = duration(deadline_s - first), duration(last - deadline_s)
        return (
            f"It may miss its deadline: it ends between {before} before and {after} after it, "
            f"{basis}."
        )
    before = duration(deadline_s - (first if last is None else last))
    return f"As things stand it ends {before} or more before its deadline: {basis}."


def _basis(length: RunLength) -> str:
    return {
        LengthBasis.LEARNED: f"learned from {count(length.runs, 'run')}",
        LengthBasis.PACE: "at the pace of this attempt",
        LengthBasis.TIME_LIMIT: "its time limit ends it by then at the latest",
        LengthBasis.NOTHING: "its length is not known",
    }[length.basis]


def _not_known(deadline_s: float, last: float | None, start: RunStart, length: RunLength) -> str:
    opening = "It is not known whether it meets its deadline:"
    if length.basis is LengthBasis.NOTHING:
        return (
            f"{opening} its run time is not known. A time limit, reported progress or earlier runs "
            "of the same name allow an estimate."
        )
    if last is not None:
        over = duration(last - deadline_s)
        return (
            f"{opening} its time limit would let it run until {over} after it, and its actual run "
            "time is not known."
        )
    when = "start" if start.waits else "resumption"
    return f"{opening} the time of its {when} is not known."
