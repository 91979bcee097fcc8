"""Records of failures and of the retries after them; frozen."""

from __future__ import annotations

from msgspec import Struct

from benchpool_scheduler.contract.causes import EndCause


class FailureRecord(Struct, frozen=True, omit_defaults=True):
    """Details of a worker's failure beyond its exit code.

    Attributes:
        cause: Cause according to its log or cluster. ``traceback``: fingerprint of its traceback.
        xid: The driver's newest error of its GPUs, None for none.
    """

    cause: EndCause | None = None
    traceback: str | None = None
    xid: int | None = None


class RetryRecord(Struct, frozen=True, omit_defaults=True):
    """Failure after which the job was queued again.

    Attributes:
        attempt: The failed attempt; ``at``: when it had ended, epoch seconds.
        node: Node of the failed worker; ``xid``: the driver's error there, None for none.
        pause_s: Delay of the next attempt, in seconds. ``avoid_s``: seconds for which the job
            avoids the node, where there are other nodes.
        exit_code: That of the worker. ``traceback``: fingerprint of its traceback.
        step: Step of its last checkpoint, None if unknown. ``saved``: whether it had one.
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
        """Return when the next attempt may begin, epoch seconds."""
        return self.at + self.pause_s

    @property
    def avoided_until(self) -> float:
        """Return until when the job avoids the node, epoch seconds."""
        return self.at + self.avoid_s
