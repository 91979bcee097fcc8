"""States of moving the CUDA state of an idle kernel to host memory and back, as one literal table.

A kernel is *parked* when three conditions hold. The driver has copied its GPU memory to host
memory, has released the GPU, and NVML no longer lists the kernel on it. Only then is the GPU lent.
Each state has one action. Its outcome is an event: the action succeeded, or the driver reports the
state of the process afterwards. A restarted scheduler queries the driver in the same way
(``rebuilt``).

A restore that the driver rejected is never retried: driver 580 leaves such a process stuck for ever
(NVIDIA/cuda-checkpoint, issue 44).

>>> state = ParkState.RUNNING
>>> def after(*events: ParkEvent) -> str:
...     state, passed = ParkState.RUNNING, []
...     for event in events:
...         state = next_state(state, event)
...         passed.append(str(state))
...     return " ".join(passed)
>>> after(ParkEvent.PARK, *[ParkEvent.DONE] * 3, ParkEvent.BACK, *[ParkEvent.DONE] * 4)
'locking checkpointing vacating parked asking returning restoring unlocking running'
>>> after(ParkEvent.PARK, ParkEvent.IS_RUNNING)  # the lock took too long
'locking running'
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class CudaState(StrEnum):
    """State of a process as reported by the driver (``CUprocessState``).

    ``CHANGING`` lies between two of the other states. Newer drivers report it.
    """

    RUNNING = "running"
    LOCKED = "locked"
    CHECKPOINTED = "checkpointed"
    FAILED = "failed"
    CHANGING = "changing"


class ParkState(StrEnum):
    """State of a kernel.

    - ``VACATING``: the driver has released the GPU and NVML must confirm it.
    - ``PARKED``, ``ASKING``: the bench does not hold the GPU.
    - ``RETURNING``: the bench holds the GPU again, and NVML must show that it is free.
    - ``LOST``: the CUDA state is lost and its owner is notified.
    - ``ENDED``: the process has ended.
    """

    RUNNING = "running"
    LOCKING = "locking"
    CHECKPOINTING = "checkpointing"
    VACATING = "vacating"
    PARKED = "parked"
    ASKING = "asking"
    RETURNING = "returning"
    RESTORING = "restoring"
    UNLOCKING = "unlocking"
    LOST = "lost"
    ENDED = "ended"


class ParkEvent(StrEnum):
    """Request, outcome of an action, or state that the driver reports after a failed action.

    ``HUNG``: the driver answers neither the action nor the query.
    """

    PARK = "park"
    BACK = "back"
    DONE = "done"
    IS_RUNNING = "is-running"
    IS_LOCKED = "is-locked"
    IS_CHECKPOINTED = "is-checkpointed"
    HAS_FAILED = "has-failed"
    HUNG = "hung"
    GONE = "gone"


class ParkAct(StrEnum):
    """Action of a state. ``PROVE_VACATED`` and ``PROVE_FREE`` query NVML."""

    NOTHING = "nothing"
    LOCK = "lock"
    CHECKPOINT = "checkpoint"
    PROVE_VACATED = "prove-vacated"
    ASK_BACK = "ask-back"
    PROVE_FREE = "prove-free"
    RESTORE = "restore"
    UNLOCK = "unlock"


_RUN, _LOCK, _CHECK, _VACATE = (
    ParkState.RUNNING, ParkState.LOCKING, ParkState.CHECKPOINTING, ParkState.VACATING
)  # fmt: skip
_PARKED, _ASK, _BACK, _RESTORE, _UNLOCK = (
    ParkState.PARKED, ParkState.ASKING, ParkState.RETURNING, ParkState.RESTORING,
    ParkState.UNLOCKING
)  # fmt: skip
_LOST, _ENDED = ParkState.LOST, ParkState.ENDED


def _row(*states: ParkState) -> Mapping[ParkEvent, ParkState]:
    return MappingProxyType(dict(zip(ParkEvent, states, strict=True)))


#             park     back     done     running  locked   checkpointed failed  hung   gone
TRANSITIONS: Mapping[ParkState, Mapping[ParkEvent, ParkState]] = MappingProxyType(
    {
        _RUN: _row(_LOCK, _RUN, _RUN, _RUN, _UNLOCK, _BACK, _LOST, _RUN, _ENDED),
        _LOCK: _row(_LOCK, _LOCK, _CHECK, _RUN, _UNLOCK, _BACK, _LOST, _LOST, _ENDED),
        _CHECK: _row(_CHECK, _CHECK, _VACATE, _RUN, _UNLOCK, _BACK, _LOST, _LOST, _ENDED),
        _VACATE: _row(_VACATE, _BACK, _PARKED, _RUN, _UNLOCK, _BACK, _LOST, _LOST, _ENDED),
        _PARKED: _row(_PARKED, _ASK, _PARKED, _LOST, _LOST, _PARKED, _LOST, _PARKED, _ENDED),
        _ASK: _row(_ASK, _ASK, _BACK, _LOST, _LOST, _ASK, _LOST, _ASK, _ENDED),
        _BACK: _row(_BACK, _BACK, _RESTORE, _RUN, _UNLOCK, _BACK, _LOST, _BACK, _ENDED),
        _RESTORE: _row(_RESTORE, _RESTORE, _UNLOCK, _RUN, _UNLOCK, _LOST, _LOST, _LOST, _ENDED),
        _UNLOCK: _row(_UNLOCK, _UNLOCK, _RUN, _RUN, _LOST, _LOST, _LOST, _LOST, _ENDED),
        _LOST: _row(*[_LOST] * 8, _ENDED),
        _ENDED: _row(*[_ENDED] * 9),
    }
)
"""Next state by present state and event.

A parked kernel that is found running or locked may use a GPU that is lent. It becomes ``LOST`` and
never shares that GPU.
"""

ACTS: Mapping[ParkState, ParkAct] = MappingProxyType(
    {
        ParkState.RUNNING: ParkAct.NOTHING,
        ParkState.LOCKING: ParkAct.LOCK,
        ParkState.CHECKPOINTING: ParkAct.CHECKPOINT,
        ParkState.VACATING: ParkAct.PROVE_VACATED,
        ParkState.PARKED: ParkAct.NOTHING,
        ParkState.ASKING: ParkAct.ASK_BACK,
        ParkState.RETURNING: ParkAct.PROVE_FREE,
        ParkState.RESTORING: ParkAct.RESTORE,
        ParkState.UNLOCKING: ParkAct.UNLOCK,
        ParkState.LOST: ParkAct.NOTHING,
        ParkState.ENDED: ParkAct.NOTHING,
    }
)
"""Action of each state."""

RESTING = frozenset(state for state, act in ACTS.items() if act is ParkAct.NOTHING)
"""States in which a kernel stays until a request arrives."""

STATE_EVENTS: Mapping[CudaState, ParkEvent] = MappingProxyType(
    {
        CudaState.RUNNING: ParkEvent.IS_RUNNING,
        CudaState.LOCKED: ParkEvent.IS_LOCKED,
        CudaState.CHECKPOINTED: ParkEvent.IS_CHECKPOINTED,
        CudaState.FAILED: ParkEvent.HAS_FAILED,
        CudaState.CHANGING: ParkEvent.HUNG,
    }
)
"""Event for each driver state after a failed action."""

LENDS = frozenset({ParkState.PARKED, ParkState.ASKING})
"""States in which the bench does not hold the GPU."""

MAKES_IMAGE = frozenset({ParkState.LOCKING, ParkState.CHECKPOINTING})
"""States in which host memory is reserved for an image that does not exist yet."""

_FOUND: Mapping[CudaState, ParkState] = MappingProxyType(
    {
        CudaState.RUNNING: ParkState.RUNNING,
        CudaState.LOCKED: ParkState.UNLOCKING,
        CudaState.CHECKPOINTED: ParkState.RETURNING,
        CudaState.FAILED: ParkState.LOST,
        CudaState.CHANGING: ParkState.LOST,
    }
)


def next_state(state: ParkState, event: ParkEvent) -> ParkState:
    """Return the state of a kernel after an event."""
    return TRANSITIONS[state][event]


def rebuilt(reported: CudaState | None, *, holds_gpu: bool) -> ParkState:
    """Return the state of a kernel as a restarted scheduler finds it.

    Args:
        reported: State of its process as reported by the driver, or None if the process has ended.
        holds_gpu: Its bench holds its GPU.

    >>> rebuilt(CudaState.CHECKPOINTED, holds_gpu=False)
    <ParkState.PARKED: 'parked'>
    >>> rebuilt(CudaState.LOCKED, holds_gpu=True)  # parking it was interrupted
    <ParkState.UNLOCKING: 'unlocking'>
    """
    if reported is None:
        return ParkState.ENDED
    return _FOUND[reported] if holds_gpu else TRANSITIONS[ParkState.PARKED][STATE_EVENTS[reported]]
