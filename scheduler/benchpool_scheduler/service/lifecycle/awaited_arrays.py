"""Texts for jobs that wait for a whole array; pure functions."""

from __future__ import annotations

from benchpool_scheduler.core.lifecycle.arrays import ArrayStanding
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.phrases import count, visible
from benchpool_scheduler.store.awaited_job import Awaited

ENDED = {JobState.FAILED: "failed", JobState.CANCELLED: "was cancelled or stopped"}


def named(it: Awaited) -> str:
    """Return an array's name in texts: its ID and name.

    >>> named(Awaited("41ab23cd7k", "folds", tasks=4))
    'array 41ab23cd folds'
    """
    return f"array {it.job[:8]} {visible(it.name)}".rstrip()


def waited_for(it: Awaited, now: ArrayStanding | None, *, seen: bool = True) -> str:
    """Return how many jobs of an array a job still waits for.

    Args:
        seen: The reader may see the array. Otherwise it is not named.

    >>> it = Awaited("41ab23cd7k", "folds", tasks=32)
    >>> waited_for(it, ArrayStanding(it.job, it.name, "susan", size=32, at_once=4))
    '32 of 32 jobs of array 41ab23cd folds'
    """
    which = named(it) if seen else "another array of its user"
    if now is None:
        return f"{which}, which cannot be read now"
    if now.stopped:
        return f"the last {count(now.left, 'job')} of {which}, which starts no more"
    return f"{now.left} of {count(now.size, 'job')} of {which}"


def why_not(now: ArrayStanding) -> str:
    """Return why an array cannot succeed as a whole, as the first part of a sentence.

    >>> from benchpool_scheduler.core.lifecycle.arrays import ArrayTask
    >>> task = ArrayTask(7, "99ab23cd7k", JobState.FAILED)
    >>> why_not(ArrayStanding("41ab23cd7k", "folds", "susan", 32, 4, (task,)))
    'task 7 of array 41ab23cd folds (job 99ab23cd) failed'
    """
    which = named(Awaited(now.id, now.name))
    bad = now.unsuccessful
    if bad is None or bad.outcome is None:
        return f"{which} ended before all of its {count(now.size, 'task')} had started"
    return f"task {bad.number} of {which} (job {bad.job[:8]}) {ENDED[bad.outcome]}"
