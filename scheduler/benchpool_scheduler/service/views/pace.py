"""End of a job at its present pace; pure functions."""

from __future__ import annotations

from benchpool_scheduler.store.records import JobProgress

LEAST_S = 10.0
LEAST_PART = 0.01
"""Minimum time in seconds, and minimum part of the whole, after which a pace is known."""


def ends_at(progress: JobProgress) -> float | None:
    """Return when the job ends at the pace of the attempt since its first report, or None.

    Work of an earlier attempt, and work that this attempt has read back, do not count.

    >>> ends_at(JobProgress(at=160.0, fraction=0.7, attempt=2, since=(100.0, 0.5)))
    250.0
    >>> ends_at(JobProgress(at=101.0, fraction=0.7, attempt=2, since=(100.0, 0.5))) is None
    True
    """
    if progress.since is None or progress.fraction is None:
        return None
    begun, before = progress.since
    took, did = progress.at - begun, progress.fraction - before
    if took < LEAST_S or did < LEAST_PART or progress.fraction >= 1:
        return None
    return round(progress.at + (1 - progress.fraction) * took / did, 3)
