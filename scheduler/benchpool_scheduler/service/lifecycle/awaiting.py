"""Texts for jobs that wait for other jobs; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchpool_scheduler import contract
from benchpool_scheduler.core.lifecycle.arrays import ArrayStanding
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.phrases import count, percent, visible
from benchpool_scheduler.service.lifecycle import awaited_arrays
from benchpool_scheduler.store.awaited_job import Awaited
from benchpool_scheduler.store.records import (
    JobRecord,
    Note,
)

NAMED = 3
"""Maximum number of jobs named in a sentence."""

_SHOWN_STATES = frozenset({JobState.QUEUED, JobState.STARTING, JobState.PAUSING, JobState.PAUSED})
"""States that are shown of an awaited job. A running one shows its progress instead."""


@dataclass(frozen=True, slots=True)
class AwaitedNow:
    """The present state of an awaited job.

    Attributes:
        fraction: Its progress as a fraction, or None if unknown.
        seen: The reader may see the job. Otherwise it is not named.
    """

    record: JobRecord
    fraction: float | None = None
    seen: bool = True


Look = Callable[[str], AwaitedNow | None]
"""Returns a job, or None if it was removed."""
LookAtArray = Callable[[str], ArrayStanding | None]
"""Returns an array, or None if it cannot be read."""


def waits_for(
    awaits: Sequence[Awaited], look: Look, arrays: LookAtArray, *, any_end: bool
) -> contract.Reason:
    """Return the reason of a job that waits for other jobs.

    Args:
        awaits: The awaited jobs and arrays, including ended ones.
        any_end: The job requires only that they have ended.
    """
    left = [it for it in awaits if it.outcome is None]
    named = [_which(it, look, arrays) for it in left[:NAMED]]
    named += [f"{len(left) - NAMED} more"] if len(left) > NAMED else []
    which = ", ".join(named)
    all_jobs = count(len(awaits), "job")
    of = len(awaits) if any(it.tasks for it in awaits) else all_jobs
    return contract.Reason(
        code=ReasonCode.WAITS_FOR_JOBS.value,
        text=f"Waits for {which}."
        if len(awaits) == 1
        else f"Waits for {len(left)} of {of}: {which}.",
        numbers={"jobs": len(left), "of": len(awaits), **_numbers(left, look, arrays)},
        remedy=_next_step(left, look, arrays, any_end=any_end),
    )


def _numbers(
    left: Sequence[Awaited], look: Look, arrays: LookAtArray
) -> dict[str, str | float | None]:
    """Return the numbers of the first awaited job or array."""
    if left and left[0].tasks:
        array = arrays(left[0].job)
        done = None if array is None else 1 - array.left / array.size
        seen = array is not None and _sees_array(array, look)
        return {
            "job": None,
            "array": left[0].job if seen else None,
            "tasks": None if array is None else array.left,
            "fraction": done,
        }
    first = look(left[0].job) if left else None
    return {
        "job": None if first is None or not first.seen else first.record.id,
        "fraction": None if first is None else first.fraction,
    }


def _next_step(left: Sequence[Awaited], look: Look, arrays: LookAtArray, *, any_end: bool) -> str:
    who, one = ("that job has", "it") if len(left) == 1 else ("they all have", "one")
    if len(left) == 1 and left[0].tasks:
        who, one = "all of them have", "one"
    usual = f"It joins the queue by itself when {who} {'ended' if any_end else 'succeeded'}"
    usual += "." if any_end else f"; if {one} does not, this job is not run."
    jobs = [job for it in left for job in (_open_in(arrays(it.job)) if it.tasks else [it.job])]
    paused = [
        now.record.id[:8]
        for now in map(look, jobs)
        if now and now.seen and now.record.state is JobState.PAUSED
    ]
    if not paused:
        return usual
    return f"`benchpool resume {' '.join(paused[:NAMED])}` resumes paused jobs. {usual}"


def _which(it: Awaited, look: Look, arrays: LookAtArray) -> str:
    if not it.tasks:
        return _now(it, look(it.job))
    array = arrays(it.job)
    seen = array is not None and _sees_array(array, look)
    return awaited_arrays.waited_for(it, array, seen=seen)


def _sees_array(array: ArrayStanding, look: Look) -> bool:
    """Return whether the reader may see an array, judged by its jobs, which share one project."""
    jobs = (look(task.job) for task in array.tasks)
    first = next((now for now in jobs if now is not None), None)
    return first is not None and first.seen


def _open_in(array: ArrayStanding | None) -> list[str]:
    return [] if array is None else [task.job for task in array.open]


def _now(it: Awaited, now: AwaitedNow | None) -> str:
    """Return an awaited job with its progress: ``job 41ab23cd prep (62 %)``."""
    if now is None:
        return _named(it, None)
    record = now.record
    parts = [str(record.state)] if record.state in _SHOWN_STATES else []
    parts += [] if now.fraction is None else [percent(now.fraction)]
    which = _named(it, record) if now.seen else "another job of its user"
    return f"{which} ({', '.join(parts)})" if parts else which


def _named(it: Awaited, job: JobRecord | None) -> str:
    return f"job {it.job[:8]} {visible(it.name if job is None else job.name)}".rstrip()


def not_run(it: Awaited, job: JobRecord | None) -> Note:
    """Return why a job is never run: an awaited job did not succeed.

    Args:
        job: The awaited job, or None if its record was removed.
    """
    how = "failed" if it.outcome is JobState.FAILED else "was cancelled"
    if job is None:
        how = "was removed"
    elif job.note is not None and job.note.code == ReasonCode.DEPENDENCY_FAILED:
        how = "was not run"
    return Note(
        ReasonCode.DEPENDENCY_FAILED,
        f"Not run: {_named(it, job)} {how}, and this job was to run after it had succeeded.",
        "Send that job again, then this one with --after and the new id. Sent again unchanged, it "
        "does not wait for ended jobs.",
        {"job": it.job, "outcome": str(it.outcome)},
    )


def not_run_after_array(it: Awaited, now: ArrayStanding | None) -> Note:
    """Return why a job is never run: an awaited array did not succeed as a whole."""
    why = (
        f"{awaited_arrays.named(it)} did not succeed"
        if now is None
        else awaited_arrays.why_not(now)
    )
    bad = None if now is None else now.unsuccessful
    return Note(
        ReasonCode.DEPENDENCY_FAILED,
        f"Not run: {why}, and this job was to run after all of that array had succeeded.",
        "Send the array again, then this job with --after and the new id; with --after-any it runs "
        "whatever the tasks' ends. Sent again unchanged, this job does not wait for that array.",
        {"array": it.job, "job": None if bad is None else bad.job, "outcome": str(it.outcome)},
    )
