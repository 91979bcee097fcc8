"""State machine of one process in ``core.benches.parking``: its actions and their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchpool_scheduler.core.benches.parking import (
    ACTS,
    RESTING,
    STATE_EVENTS,
    ParkAct,
    ParkEvent,
    ParkState,
    next_state,
)
from benchpool_scheduler.core.benches.parking_gates import image_size
from benchpool_scheduler.runtime.local.parking.driver import CallFailed, CheckpointDriver
from benchpool_scheduler.runtime.local.parking.gpu_facts import GpuFacts
from benchpool_scheduler.runtime.parker import Parkable
from benchpool_scheduler.worker import process_identity

VACATED_S, LOOK_S = 10.0, 0.2
"""Timeout for NVML to drop a checkpointed process, and poll interval, in seconds."""


@dataclass(frozen=True, slots=True)
class Hands:
    """Actors of parking: the driver, NVML, and callbacks.

    Attributes:
        granted: Returns whether the bench holds the GPU of a process again.
        is_there: Returns whether the same process still exists. ``on_bench``: returns whether a
            process (pid) that uses a GPU (UUID) belongs to the bench that holds it.
        pause: Waits some seconds. ``on_failure``: receives the reason of a failed action.
    """

    driver: CheckpointDriver
    gpus: GpuFacts
    granted: Callable[[Parkable], bool]
    is_there: Callable[[Parkable], bool]
    on_bench: Callable[[int, str], bool]
    pause: Callable[[float], None]
    on_failure: Callable[[str], None]


def is_there(one: Parkable) -> bool:
    """Return whether the same process still exists."""
    return process_identity.identity(one.pid) == one.process


def carry_on(state: ParkState, one: Parkable, hands: Hands) -> ParkState:
    """Run the action of a state and return the next state; resting states have no action."""
    if not hands.is_there(one):
        return next_state(state, ParkEvent.GONE)
    if state in RESTING:
        return state
    return next_state(state, _event(ACTS[state], one, hands))


def until_rest(state: ParkState, one: Parkable, hands: Hands, most: int = 100) -> ParkState:
    """Carry on until a state rests, at most ``most`` steps, with a pause between equal states."""
    for _ in range(most):
        before, state = state, carry_on(state, one, hands)
        if state in RESTING:
            break
        if state is before:
            hands.pause(LOOK_S)
    return state


def _event(act: ParkAct, one: Parkable, hands: Hands) -> ParkEvent:
    try:
        if _done(act, one, hands):
            return ParkEvent.DONE
        if act is ParkAct.PROVE_VACATED:
            hands.on_failure("NVML still lists the process on its GPU")
    except CallFailed as failed:
        hands.on_failure(str(failed))
    return _afterwards(one, hands)


def _done(act: ParkAct, one: Parkable, hands: Hands) -> bool:
    match act:
        case ParkAct.LOCK:
            hands.driver.lock(one.pid)
        case ParkAct.CHECKPOINT:
            hands.driver.checkpoint(one.pid)
        case ParkAct.PROVE_VACATED:
            return _vacated(one, hands)
        case ParkAct.ASK_BACK:
            return hands.granted(one)
        case ParkAct.PROVE_FREE:
            return _is_free(one, hands)
        case ParkAct.RESTORE:
            hands.driver.restore(one.pid, {})
        case ParkAct.UNLOCK:
            hands.driver.unlock(one.pid)
    return True


def _vacated(one: Parkable, hands: Hands) -> bool:
    waited = 0.0
    while True:
        there = hands.gpus.processes(one.gpu)
        if there is not None and one.pid not in there:
            return True
        if waited >= VACATED_S:
            return False
        hands.pause(LOOK_S)
        waited += LOOK_S


def _is_free(one: Parkable, hands: Hands) -> bool:
    """Return whether NVML proves that the process fits; a failed restore cannot be repeated."""
    memory, there = hands.gpus.memory(one.gpu), hands.gpus.processes(one.gpu)
    if memory is None or there is None:
        return False
    others = [pid for pid in there if not hands.on_bench(pid, one.gpu)]
    return not others and memory.free >= min(image_size(one.used), memory.total)


def _afterwards(one: Parkable, hands: Hands) -> ParkEvent:
    """Return the driver's state of a process after a failed action."""
    if not hands.is_there(one):
        return ParkEvent.GONE
    try:
        state = hands.driver.state(one.pid)
    except CallFailed:
        return ParkEvent.HUNG
    return STATE_EVENTS[state]
