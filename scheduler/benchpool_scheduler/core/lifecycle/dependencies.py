"""Which jobs may join the queue that wait for others, and which are never run.

A job may name jobs that it waits for. Until they have ended as it asks, it is no claimant: passes
do not see it, it asks for nothing and grows no older in the line.

>>> from benchpool_scheduler.core.lifecycle.states import JobState
>>> done, failed = JobState.SUCCEEDED, JobState.FAILED
>>> [str(verdict(known)) for known in ([done, None], [done, done], [failed, None])]
['waits', 'free', 'never']
>>> str(verdict([failed, done], any_end=True))
'free'
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from benchpool_scheduler.core.lifecycle.states import TERMINAL, JobState


class DependencyVerdict(StrEnum):
    """What becomes of a job that waits for others."""

    WAITS = "waits"
    """Some of them have not ended."""
    FREE = "free"
    """All have ended as it asks: it joins the queue."""
    NEVER = "never"
    """One has ended otherwise: it is not run."""


def verdict(outcomes: Iterable[JobState | None], *, any_end: bool = False) -> DependencyVerdict:
    """Return what becomes of a job.

    Args:
        outcomes: Of each job that it waits for the state in which that ended, None before.
        any_end: It asks only that they have ended.
    """
    found = list(outcomes)
    if not any_end and any(it is not None and it is not JobState.SUCCEEDED for it in found):
        return DependencyVerdict.NEVER
    return (
        DependencyVerdict.FREE if all(it in TERMINAL for it in found) else DependencyVerdict.WAITS
    )
