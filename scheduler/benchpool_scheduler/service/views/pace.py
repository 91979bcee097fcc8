"""When a job will be done at the pace at which it goes. Pure."""

from __future__ import annotations

from benchpool_scheduler.store.records import JobProgress

LEAST_S = 10.0
LEAST_PART = 0.01
"""A pace is known when it has been seen for so long, and for so much of the whole."""


def ends_at(progress: JobProgress) -> float | None:
    """Return when the whole is done if the attempt goes on as it did since its first word.

    What an earlier attempt did, and what this one read back, does not count as its pace.

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
