"""All interleavings of two processes at a lease, within bounds: at most one leads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.kube import election
from benchpool_scheduler.kube.election import (
    ElectionState,
    ElectionTiming,
    Record,
    TermOver,
    Wait,
    Write,
    may_write,
    observe,
    step,
)

pytestmark = pytest.mark.slow

TIMING = ElectionTiming(duration_s=3, renew_s=2, retry_s=1)
TICKS, WRITES = 5, 3
OFFSETS = (0.0, 1000.0)
"""Offsets of clocks that run equally fast, in seconds."""

Written = Callable[[ElectionState, Record, float, float, ElectionTiming], ElectionState]


@dataclass(frozen=True, slots=True)
class Request:
    """Write in flight, which may arrive at any time or never."""

    holder: str
    version: str | None
    transitions: int
    sent: float


@dataclass(frozen=True, slots=True)
class Process:
    """State of one of the two processes, and the answers that it awaits.

    ``read`` is the pending answer to a read, ``wrote`` the pending answer to a write.
    """

    standing: ElectionState
    read: tuple[Record | None] | None = None
    wrote: tuple[Record, float] | None = None


@dataclass(frozen=True, slots=True)
class World:
    now: int
    lease: Record | None
    processes: tuple[Process, Process]
    requests: tuple[Request, ...] = ()
    writes: int = 0
    newest: int = 0


def explore(written: Written, *, slow: bool = False) -> int:
    """Visit every world and return their number. Raises AssertionError if two processes lead."""
    first = World(0, None, (Process(ElectionState("a")), Process(ElectionState("b"))))
    seen = {first}
    ways = deque([first])
    while ways:
        world = ways.popleft()
        for after in following(world, written, slow):
            if after not in seen:
                check(after)
                seen.add(after)
                ways.append(after)
    return len(seen)


def check(world: World) -> None:
    leads = [
        process.standing
        for process, offset in zip(world.processes, OFFSETS, strict=True)
        if may_write(process.standing, world.now + offset)
    ]
    assert len(leads) <= 1, f"two lead: {world}"


def following(world: World, written: Written, slow: bool) -> Iterator[World]:
    if world.now < TICKS:
        yield replace(world, now=world.now + 1)
    for request in world.requests:
        rest = list(world.requests)
        rest.remove(request)
        yield replace(world, requests=tuple(rest))  # the request is lost
        yield from _arrives(replace(world, requests=tuple(rest)), request)
    for index in (0, 1):
        yield from _acts(world, index, written, slow)


def _with(world: World, index: int, process: Process) -> World:
    processes = list(world.processes)
    processes[index] = process
    return replace(world, processes=(processes[0], processes[1]))


def _arrives(world: World, request: Request) -> Iterator[World]:
    version = None if world.lease is None else world.lease.version
    if version != request.version:
        return  # refused; its answer shows no more than a read
    number = world.writes + 1
    lease = Record(request.holder, request.transitions, str(number), str(number))
    world = replace(world, lease=lease, writes=number)
    yield world  # the answer is lost
    index = 0 if request.holder == "a" else 1
    process = world.processes[index]
    yield _with(world, index, replace(process, wrote=(lease, request.sent)))


def _acts(world: World, index: int, written: Written, slow: bool) -> Iterator[World]:
    """Yield the world after each possible action of a process, which may also stay inactive."""
    process, now = world.processes[index], world.now + OFFSETS[index]
    standing = process.standing
    if process.wrote is not None:
        record, sent = process.wrote
        after = written(standing, record, sent, now, TIMING)
        if may_write(after, now) and not may_write(standing, now) and standing.until is None:
            assert after.epoch > world.newest, f"an epoch twice: {world}"
            world = replace(world, newest=after.epoch)
        yield _with(world, index, replace(process, standing=after, wrote=None))
        return
    if process.read is not None:
        after = observe(standing, process.read[0], now)
        yield _with(world, index, replace(process, standing=after, read=None))
        return
    if not standing.over and standing.until is None and slow:
        yield _with(world, index, replace(process, read=(world.lease,)))
    if not standing.over:
        yield _with(world, index, replace(process, standing=observe(standing, world.lease, now)))
    match step(standing, now, TIMING):
        case Write(version=version, transitions=transitions):
            request = Request(standing.me, version, transitions, now)
            if world.writes + len(world.requests) < WRITES and request not in world.requests:
                yield replace(world, requests=(*world.requests, request))
        case TermOver() if not standing.over:
            yield _with(world, index, replace(process, standing=replace(standing, over=True)))
        case _:
            pass


def test_at_most_one_leader_with_unique_epochs() -> None:
    assert explore(election.written) > 10_000


def test_at_most_one_leader_with_stale_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "TICKS", 4)
    monkeypatch.setitem(globals(), "WRITES", 2)
    assert explore(election.written, slow=True) > 10_000


def test_exploration_detects_lease_counted_from_answer() -> None:
    def from_the_answer(
        standing: ElectionState, record: Record, sent: float, now: float, timing: ElectionTiming
    ) -> ElectionState:
        return election.written(standing, record, now, now, timing)

    with pytest.raises(AssertionError, match="two lead"):
        explore(from_the_answer)


def test_exploration_detects_leader_exceeding_lease() -> None:
    def too_long(
        standing: ElectionState, record: Record, sent: float, now: float, timing: ElectionTiming
    ) -> ElectionState:
        return replace(election.written(standing, record, sent, now, timing), until=sent + 4)

    with pytest.raises(AssertionError, match="two lead"):
        explore(too_long)


def test_unsafe_timings_are_rejected() -> None:
    with pytest.raises(ValueError, match="must be shorter"):
        ElectionTiming(duration_s=10, renew_s=10, retry_s=2)


@given(
    st.floats(0, 1e9),
    st.floats(0, 60),
    st.builds(Record, st.sampled_from(["", "b"]), st.integers(1, 99), st.just("m"), st.just("v")),
)
def test_standby_takes_over_when_record_is_unchanged_for_lease(
    seen: float, waited: float, record: Record
) -> None:
    timing = ElectionTiming()
    standing = observe(ElectionState("a"), record, seen)
    again = observe(standing, record, seen + waited)
    assert again == standing
    now = seen + waited
    match step(standing, now, timing):
        case Write(version=version, transitions=transitions):
            assert not record.holder or now - seen >= timing.duration_s
            assert (version, transitions) == ("v", record.transitions + 1)
        case Wait(seconds=seconds):
            assert record.holder
            assert 0 <= seconds <= timing.retry_s
        case TermOver():
            pytest.fail("it never led")


def test_holder_with_lost_lease_ends_term() -> None:
    mine = Record("a", 1, "m", "1")
    leads = election.written(ElectionState("a", seen=0.0), mine, 0.0, 0.1, ElectionTiming())
    assert may_write(leads, 5.0)
    for other in (None, Record("b", 2, "n", "2")):
        over = observe(leads, other, 5.0)
        assert not may_write(over, 5.0)
        assert step(over, 5.0, ElectionTiming()) == TermOver()
    assert step(leads, 10.0, ElectionTiming()) == TermOver()
