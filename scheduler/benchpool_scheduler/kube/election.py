"""Who leads, worked out from what was seen of one Lease object: pure, and explored exhaustively.

Theory of operation
-------------------
A ``Lease`` in the API server names its holder. The holder renews it every ``retry_s``; each write
depends on the version that was read, so that of two writers one fails. Nobody compares clocks:
whoever does not hold the lease waits until it has seen *one and the same record* for ``duration_s``
on its own clock, counted from when it saw that record first. The holder counts from the moment
*before* it sent the renewal that succeeded, and leads for ``renew_s`` from then on, which is less.
So the old one has stopped before any other can have waited long enough, whatever is lost or late:

    holder      sends renewal ──── leads ────┤ renew_s: writes nothing more
    another            sees it first ──────── waits ────────┤ duration_s: may take over

Clocks need to run equally fast, not to show the same time. A clock that goes on while the machine
sleeps is used (``leading.clock``); a process that was stopped finds its time over before its next
write (``may_write``).

The epoch of a term is the lease's number of transitions. It grows with each term, also when the
holder before resigned, and is on every object that a leader writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; ``retry_s`` < ``renew_s`` < ``duration_s``.

    Attributes:
        duration_s: So long a record must stand still before somebody else takes over.
        renew_s: So long a holder leads after sending a renewal that succeeded.
        retry_s: Between two looks or renewals.
    """

    duration_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        """Refuse timings under which two could lead."""
        if not 0 < self.retry_s < self.renew_s < self.duration_s:
            raise ValueError(
                f"retry {self.retry_s} s must be shorter than renew {self.renew_s} s, and that "
                f"shorter than the duration {self.duration_s} s"
            )


@dataclass(frozen=True, slots=True)
class Record:
    """The lease as it was read.

    Attributes:
        holder: Empty when the last one resigned.
        transitions: Number of terms so far.
        mark: Differs after each renewal.
        version: For the next write.
        address: Where the holder can be reached, as it says.
    """

    holder: str
    transitions: int
    mark: str
    version: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What one process knows.

    Attributes:
        me: Its identity; no other process ever has the same.
        record: The lease as last seen, None when there was none. ``seen``: since when it is so.
        until: Until when it leads; None when it does not.
        epoch: Of its term.
        over: It has led, and never will again.
    """

    me: str
    record: Record | None = None
    seen: float | None = None
    until: float | None = None
    epoch: int = 0
    over: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again after so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Write:
    """Write the lease as its holder; ``version`` is None to create it."""

    version: str | None
    transitions: int


@dataclass(frozen=True, slots=True)
class End:
    """Its time is over: the process must end."""


Step = Wait | Write | End


def may_write(standing: Standing, now: float) -> bool:
    """Tell whether this process may write as the leader.

    >>> leader = Standing("a", until=10.0)
    >>> may_write(leader, 9.9), may_write(leader, 10.0)
    (True, False)
    """
    return standing.until is not None and not standing.over and now < standing.until


def observe(standing: Standing, record: Record | None, now: float) -> Standing:
    """Take in the lease as it was read; ``now`` is after the answer came."""
    if standing.seen is None or record != standing.record:
        standing = replace(standing, record=record, seen=now)
    if standing.until is not None and (record is None or record.holder != standing.me):
        return replace(standing, over=True)
    return standing


def step(standing: Standing, now: float, timing: Timing) -> Step:
    """Return what to do next, after a look at the lease.

    >>> step(Standing("a", seen=0.0), 0.0, Timing())
    Write(version=None, transitions=1)
    >>> other = Record("b", 4, "x", "7")
    >>> step(Standing("a", other, seen=100.0), 114.9, Timing())
    Wait(seconds=0.1)
    >>> step(Standing("a", other, seen=100.0), 115.0, Timing())
    Write(version='7', transitions=5)
    """
    record = standing.record
    if standing.over:
        return End()
    if standing.until is not None:
        if now >= standing.until:
            return End()
        return Write(None if record is None else record.version, standing.epoch)
    if standing.seen is None:
        return Wait(0.0)
    if record is None:
        return Write(None, 1)
    still_s = now - standing.seen
    if not record.holder or still_s >= timing.duration_s:
        return Write(record.version, record.transitions + 1)
    return Wait(min(timing.retry_s, round(timing.duration_s - still_s, 3)))


def written(
    standing: Standing, record: Record, sent: float, now: float, timing: Timing
) -> Standing:
    """Take in that a write succeeded.

    Args:
        record: The lease as the server has it now. ``sent``: when the write was begun.
    """
    return replace(
        standing,
        record=record,
        seen=now,
        until=sent + timing.renew_s,
        epoch=record.transitions,
    )
