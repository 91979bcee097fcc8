"""What a job last said of itself: frozen, kept with the job."""

from __future__ import annotations

from msgspec import Struct

from benchpool_scheduler.contract.jobs import TrackerRun


class JobProgress(Struct, frozen=True):
    """What the job last said of itself; ``checkpoint_at`` is when it last saved.

    Attributes:
        saved: Which fraction was done when it last saved; ``step``: at which step that was.
        attempt: Which one said it, ``since`` when and from which fraction; ``before``: the most
            that earlier ones said.
        runs: Those that it began in trackers, the newest last.
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
