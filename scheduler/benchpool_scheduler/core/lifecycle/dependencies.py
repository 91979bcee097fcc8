"""Dependencies between jobs: which waiting jobs may be queued, and which never run.

A job may name jobs that it waits for. Until they have ended as required, it is not a claimant. It
is not part of a pass, adds no demand, and its waiting time in the queue does not begin.

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
    """Decision on a job that waits for other jobs."""

    WAITS = "waits"
    """Some of the other jobs have not ended."""
    FREE = "free"
    """All have ended as required: the job is queued."""
    NEVER = "never"
    """A required success has failed: the job never runs."""


def verdict(outcomes: Iterable[JobState | None], *, any_end: bool = False) -> DependencyVerdict:
    """Return the decision on a job.

    Args:
        outcomes: Final state of each job that it waits for, or None before its end.
        any_end: The other jobs need only end, with any outcome.
    """
    found = list(outcomes)
    if not any_end and any(it is not None and it is not JobState.SUCCEEDED for it in found):
        return DependencyVerdict.NEVER
    return (
        DependencyVerdict.FREE if all(it in TERMINAL for it in found) else DependencyVerdict.WAITS
    )
