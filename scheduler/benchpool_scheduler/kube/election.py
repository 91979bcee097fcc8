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
class ElectionTiming:
    """Seconds; ``retry_s`` < ``renew_s`` < ``duration_s``.

    Attributes:
        duration_s: A record must stand still for this long before somebody else takes over.
        renew_s: A holder leads for this long after sending a renewal that succeeded.
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
class ElectionState:
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
class TermOver:
    """Its time is over: the process must end."""


Step = Wait | Write | TermOver


def may_write(state: ElectionState, now: float) -> bool:
    """Tell whether this process may write as the leader.

    >>> leader = ElectionState("a", until=10.0)
    >>> may_write(leader, 9.9), may_write(leader, 10.0)
    (True, False)
    """
    return state.until is not None and not state.over and now < state.until


def observe(state: ElectionState, record: Record | None, now: float) -> ElectionState:
    """Take in the lease as it was read; ``now`` is after the answer came."""
    if state.seen is None or record != state.record:
        state = replace(state, record=record, seen=now)
    if state.until is not None and (record is None or record.holder != state.me):
        return replace(state, over=True)
    return state


def step(state: ElectionState, now: float, timing: ElectionTiming) -> Step:
    """Return what to do next, after a look at the lease.

    >>> step(ElectionState("a", seen=0.0), 0.0, ElectionTiming())
    Write(version=None, transitions=1)
    >>> other = Record("b", 4, "x", "7")
    >>> step(ElectionState("a", other, seen=100.0), 114.9, ElectionTiming())
    Wait(seconds=0.1)
    >>> step(ElectionState("a", other, seen=100.0), 115.0, ElectionTiming())
    Write(version='7', transitions=5)
    """
    record = state.record
    if state.over:
        return TermOver()
    if state.until is not None:
        if now >= state.until:
            return TermOver()
        return Write(None if record is None else record.version, state.epoch)
    if state.seen is None:
        return Wait(0.0)
    if record is None:
        return Write(None, 1)
    still_s = now - state.seen
    if not record.holder or still_s >= timing.duration_s:
        return Write(record.version, record.transitions + 1)
    return Wait(min(timing.retry_s, round(timing.duration_s - still_s, 3)))


def written(
    state: ElectionState, record: Record, sent: float, now: float, timing: ElectionTiming
) -> ElectionState:
    """Take in that a write succeeded.

    Args:
        record: The lease as the server has it now. ``sent``: when the write was begun.
    """
    return replace(
        state,
        record=record,
        seen=now,
        until=sent + timing.renew_s,
        epoch=record.transitions,
    )
