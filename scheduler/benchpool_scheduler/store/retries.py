"""What is kept of failures, and of the times that a job was tried again after one: frozen."""

from __future__ import annotations

from msgspec import Struct

from benchpool_scheduler.contract.causes import EndCause


class FailureRecord(Struct, frozen=True, omit_defaults=True):
    """What is known of a worker's failure beyond its exit code.

    Attributes:
        cause: As its log or its cluster says. ``traceback``: a mark that equal tracebacks share.
        xid: The driver's newest error of its GPUs, None for none.
    """

    cause: EndCause | None = None
    traceback: str | None = None
    xid: int | None = None


class RetryRecord(Struct, frozen=True, omit_defaults=True):
    """A failure after which the job queued again.

    Attributes:
        attempt: The one that failed; ``at``: when it had ended, epoch seconds.
        node: Where the worker was that failed; ``xid``: the driver's error there, None for none.
        pause_s: Seconds that the job waits from then on. ``avoid_s``: those that it keeps off the
            node, where there are others.
        exit_code: That of the worker. ``traceback``: a mark that equal tracebacks share.
        step: At which step it had last saved; None where that is not known. ``saved``: it had.
    """

    attempt: int
    cause: EndCause
    at: float
    node: str
    pause_s: float = 0.0
    avoid_s: float = 0.0
    xid: int | None = None
    exit_code: int | None = None
    traceback: str | None = None
    step: int | None = None
    saved: bool = False

    @property
    def next_at(self) -> float:
        """When the next attempt may begin, epoch seconds."""
        return self.at + self.pause_s

    @property
    def avoided_until(self) -> float:
        """Until when the job keeps off the node, epoch seconds."""
        return self.at + self.avoid_s
