"""How the CUDA state of an idle kernel goes to host memory and comes back: one literal table.

A kernel is *parked* when the driver has copied its GPU memory to host memory, has let go of the
GPU, and NVML names the kernel on it no longer; only then is the GPU lent. In each state there is
one act. What comes of it is an event: the act succeeded, or what the driver says of the process
afterwards. A scheduler that was restarted asks the driver the same question (``rebuilt``).

A restore that the driver refused is never tried again: driver 580 leaves such a process stuck for
ever (NVIDIA/cuda-checkpoint, issue 44).

>>> state = ParkState.RUNNING
>>> def after(*heard: ParkEvent) -> str:
...     state, passed = ParkState.RUNNING, []
...     for event in heard:
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
    """What the driver says of a process (``CUprocessState``).

    ``CHANGING`` is between two of the others: newer drivers tell of it.
    """

    RUNNING = "running"
    LOCKED = "locked"
    CHECKPOINTED = "checkpointed"
    FAILED = "failed"
    CHANGING = "changing"


class ParkState(StrEnum):
    """Where a kernel stands.

    In ``VACATING`` the driver has let go and NVML must confirm it. In ``PARKED`` and ``ASKING`` the
    bench does not hold the GPU; in ``RETURNING`` it does again, and NVML must prove it free.
    ``LOST``: the CUDA state is lost, and its owner is told; ``ENDED``: the process has ended.
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
    """What is wanted, what an act came to, or what the driver says where it did not succeed.

    ``HUNG``: the driver does not answer, neither the act nor the question.
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
    """What is done in a state; ``PROVE_VACATED`` and ``PROVE_FREE`` ask NVML."""

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
"""The next state, by the present one and what was heard. A kernel that is parked and yet found
running or locked has a GPU that is lent: it is lost, and never has that GPU beside another."""

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
"""What is done in each state."""

RESTING = frozenset(state for state, act in ACTS.items() if act is ParkAct.NOTHING)
"""The states in which a kernel stays until somebody wants something."""

HEARD: Mapping[CudaState, ParkEvent] = MappingProxyType(
    {
        CudaState.RUNNING: ParkEvent.IS_RUNNING,
        CudaState.LOCKED: ParkEvent.IS_LOCKED,
        CudaState.CHECKPOINTED: ParkEvent.IS_CHECKPOINTED,
        CudaState.FAILED: ParkEvent.HAS_FAILED,
        CudaState.CHANGING: ParkEvent.HUNG,
    }
)
"""What the answer of the driver means after an act that failed."""

LENDS = frozenset({ParkState.PARKED, ParkState.ASKING})
"""The states in which its bench does not hold the GPU."""

MAKES_IMAGE = frozenset({ParkState.LOCKING, ParkState.CHECKPOINTING})
"""The states in which host memory is counted for an image that is not there yet."""

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
    """Return where a kernel stands after an event."""
    return TRANSITIONS[state][event]


def rebuilt(said: CudaState | None, *, holds_gpu: bool) -> ParkState:
    """Return where a kernel stands, as a scheduler finds it that was restarted.

    Args:
        said: What the driver says of its process; None where that has ended.
        holds_gpu: Its bench holds its GPU.

    >>> rebuilt(CudaState.CHECKPOINTED, holds_gpu=False)
    <ParkState.PARKED: 'parked'>
    >>> rebuilt(CudaState.LOCKED, holds_gpu=True)  # parking it was interrupted
    <ParkState.UNLOCKING: 'unlocking'>
    """
    if said is None:
        return ParkState.ENDED
    return _FOUND[said] if holds_gpu else TRANSITIONS[ParkState.PARKED][HEARD[said]]
