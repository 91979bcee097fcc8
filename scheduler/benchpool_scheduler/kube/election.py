"""Leader election by observation of one Lease object: pure, and explored exhaustively.

Theory of operation
-------------------

A ``Lease`` in the API server names its holder. The holder renews it every ``retry_s``. Each write
depends on the version that was read, so that of two concurrent writes one fails. Clocks are never
compared. Another process waits until it has seen *one and the same record* for ``duration_s`` on
its own clock, counted from the first time it saw that record. The holder counts from the moment
*before* it sent the successful renewal. It leads for ``renew_s`` from then on, which is less. So
the old leader has stopped before another process can have waited long enough, even if messages are
lost or late:

    holder      sends renewal ──── leads ────┤ renew_s: writes nothing more
    another            sees it first ──────── waits ────────┤ duration_s: may take over

Clocks must run equally fast; they need not show the same time. The clock continues while the
machine sleeps (``leader_election.clock``). A suspended process detects the end of its term before
its next write (``may_write``).

The epoch of a term is the lease's number of transitions. It grows with each term, even if the
previous holder resigned. Every object that a leader writes carries it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ElectionTiming:
    """Timing in seconds; ``retry_s`` < ``renew_s`` < ``duration_s``.

    Attributes:
        duration_s: Time for which a record must be unchanged before another process takes over.
        renew_s: Time for which a holder leads after sending a successful renewal.
        retry_s: Interval between two looks or renewals.
    """

    duration_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        """Reject timings that would allow two leaders. Raises ValueError."""
        if not 0 < self.retry_s < self.renew_s < self.duration_s:
            raise ValueError(
                f"retry {self.retry_s} s must be shorter than renew {self.renew_s} s, and that "
                f"shorter than the duration {self.duration_s} s"
            )


@dataclass(frozen=True, slots=True)
class Record:
    """The lease as it was read.

    Attributes:
        holder: Identity of the holder; empty if the last one resigned.
        transitions: Number of terms so far.
        mark: Value that differs after each renewal.
        version: Resource version for the next write.
        address: Address of the holder, as the holder wrote it.
    """

    holder: str
    transitions: int
    mark: str
    version: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class ElectionState:
    """State of one process.

    Attributes:
        me: Its identity, unique among all processes.
        record: The lease as last seen, None without one. ``seen``: time since which it is
        unchanged.
        until: End of its leadership; None if it does not lead.
        epoch: Epoch of its term.
        over: Its term has ended, and it will not lead again.
    """

    me: str
    record: Record | None = None
    seen: float | None = None
    until: float | None = None
    epoch: int = 0
    over: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Step: look again after this time."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Write:
    """Step: write the lease as its holder; ``version`` is None to create it."""

    version: str | None
    transitions: int


@dataclass(frozen=True, slots=True)
class TermOver:
    """Step: the term has ended, so the process must end."""


Step = Wait | Write | TermOver


def may_write(state: ElectionState, now: float) -> bool:
    """Return whether this process may write as the leader.

    >>> leader = ElectionState("a", until=10.0)
    >>> may_write(leader, 9.9), may_write(leader, 10.0)
    (True, False)
    """
    return state.until is not None and not state.over and now < state.until


def observe(state: ElectionState, record: Record | None, now: float) -> ElectionState:
    """Return the state after a read of the lease; ``now`` is the time after the answer."""
    if state.seen is None or record != state.record:
        state = replace(state, record=record, seen=now)
    if state.until is not None and (record is None or record.holder != state.me):
        return replace(state, over=True)
    return state


def step(state: ElectionState, now: float, timing: ElectionTiming) -> Step:
    """Return the next step after a read of the lease.

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
    """Return the state after a successful write.

    Args:
        record: The lease as the server has it now. ``sent``: time at which the write was begun.
    """
    return replace(
        state,
        record=record,
        seen=now,
        until=sent + timing.renew_s,
        epoch=record.transitions,
    )
