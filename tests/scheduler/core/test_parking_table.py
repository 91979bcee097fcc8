"""Kernels on their way to host memory and back, for random histories and driver faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.benches.parking import (
    ACTS,
    RESTING,
    TRANSITIONS,
    ParkAct,
    ParkEvent,
    ParkState,
    next_state,
)
from benchpool_scheduler.runtime.local.parking.steps import carry_on, until_rest
from benchpool_scheduler.runtime.parker import Parkable
from benchpool_support.parking_story import FAULTS, GIB, TOTAL, Fault, Kernel, World

KERNELS = 2
ENDS = {ParkState.RUNNING, ParkState.LOST, ParkState.ENDED}
LENT = {ParkState.PARKED, ParkState.ASKING}

AT_ONCE = {"loan": ("park", "rest", "borrow"), "end": ("leave", "back", "rest")}
"""Frequent sequences of events, so that random histories reach far states."""

steps = st.lists(
    st.tuples(
        st.sampled_from(["park", "back", "act", "rest", "borrow", "leave", "forget", *AT_ONCE]),
        st.integers(0, KERNELS - 1),
    ),
    max_size=60,
)


def world_of(faults: Sequence[Fault]) -> World:
    drawn: Iterator[Fault] = chain(faults, repeat(""))
    kernels = {
        pid: Kernel(Parkable(pid, str(pid), f"GPU-{pid}", (pid + 1) * GIB))
        for pid in range(KERNELS)
    }
    world = World(kernels, lambda: next(drawn), granted=lambda one: not world.borrowed(one.gpu))
    return world


def check(world: World) -> None:
    """Check that no GPU has two users: a kernel whose memory is on it, and a borrower."""
    for kernel in world.kernels.values():
        if kernel.one.gpu in world.jobs:
            assert not kernel.on_gpu(), kernel
            assert kernel.state in LENT | ENDS, kernel


@settings(max_examples=400, deadline=None)
@given(steps, st.lists(st.sampled_from(FAULTS), max_size=20))
def test_parked_gpu_has_one_user_and_kernels_settle(
    history: Sequence[tuple[str, int]], faults: Sequence[Fault]
) -> None:
    world = world_of(faults)
    hands = world.hands()
    for what, pid in ((it, pid) for drawn, pid in history for it in AT_ONCE.get(drawn, (drawn,))):
        kernel = world.kernels[pid]
        gpu = kernel.one.gpu
        match what:
            case "park":
                kernel.state = next_state(kernel.state, ParkEvent.PARK)
            case "back":
                kernel.state = next_state(kernel.state, ParkEvent.BACK)
            case "act":
                kernel.state = carry_on(kernel.state, kernel.one, hands)
            case "rest":
                kernel.state = until_rest(kernel.state, kernel.one, hands, most=6)
            case "borrow" if kernel.state is ParkState.PARKED and gpu not in world.borrowers:
                world.jobs.add(gpu)
                world.borrowers[gpu] = TOTAL - GIB // 2
            case "leave":  # its memory stays a moment longer
                world.jobs.discard(gpu)
            case "forget" if gpu not in world.jobs:
                world.borrowers.pop(gpu, None)
        check(world)
    world.jobs.clear()
    world.borrowers.clear()
    for kernel in world.kernels.values():
        for _ in range(2):  # a leaving job first arrives
            kernel.state = next_state(kernel.state, ParkEvent.BACK)
            kernel.state = until_rest(kernel.state, kernel.one, hands)
        assert kernel.state in ENDS, kernel
        check(world)


def test_parking_table_is_complete_and_requires_nvml_check() -> None:
    for state in ParkState:
        assert set(TRANSITIONS[state]) == set(ParkEvent)
    assert [it for it in ParkState if ACTS[it] is ParkAct.NOTHING] == sorted(
        RESTING, key=list(ParkState).index
    )
    into = {
        wanted: {
            state
            for state, row in TRANSITIONS.items()
            for event, after in row.items()
            if after is wanted and event is ParkEvent.DONE and state is not wanted
        }
        for wanted in ParkState
    }
    assert into[ParkState.PARKED] == {ParkState.VACATING}
    assert into[ParkState.RESTORING] == {ParkState.RETURNING}
    others = {
        state
        for state, row in TRANSITIONS.items()
        for event, after in row.items()
        if after is ParkState.RESTORING and event is not ParkEvent.DONE
    }
    assert others == {ParkState.RESTORING}


def test_rejected_restore_is_not_retried() -> None:
    for event in (ParkEvent.IS_CHECKPOINTED, ParkEvent.HUNG, ParkEvent.HAS_FAILED):
        assert next_state(ParkState.RESTORING, event) is ParkState.LOST
    assert {next_state(ParkState.LOST, event) for event in ParkEvent} == {
        ParkState.LOST,
        ParkState.ENDED,
    }


def test_computing_kernel_is_not_parked() -> None:
    world = world_of(["refused"])
    kernel = world.kernels[0]
    locking = next_state(ParkState.RUNNING, ParkEvent.PARK)
    assert until_rest(locking, kernel.one, world.hands()) is ParkState.RUNNING
    assert kernel.on_gpu()
