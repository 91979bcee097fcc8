"""The last reported progress of a job, stored with the job."""

from __future__ import annotations

from msgspec import Struct

from benchpool_scheduler.contract.jobs import TrackerRun


class JobProgress(Struct, frozen=True):
    """Last reported progress of a job; ``checkpoint_at`` is the time of its last checkpoint.

    Attributes:
        saved: Completed fraction at the last checkpoint; ``step``: the step of that checkpoint.
        attempt: The attempt that reported it; ``since``: when it first did, with which fraction;
            ``before``: the largest fraction that earlier attempts reported.
        runs: Its runs in experiment trackers, the newest last.
    """

    at: float
    fraction: float | None = None
    text: str | None = None
    checkpoint_at: float | None = None
    saved: float | None = None
    step: int | None = None
    attempt: int = 0
    before: float | None = None
    since: tuple[float, float] | None = None
    runs: tuple[TrackerRun, ...] = ()
