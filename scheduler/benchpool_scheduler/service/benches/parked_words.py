"""Texts about parked benches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from benchpool_scheduler.contract import ParkStep
from benchpool_scheduler.core.benches.parking import ParkState
from benchpool_scheduler.phrases import exactly

OFF = (
    "This pool parks no benches: that is experimental, for one machine with NVIDIA GPUs, and off "
    "unless an administrator sets build.parking to true (`benchpool doctor` says what it needs)."
)
NOT_LENT = (
    "Nothing would be won by parking: this pool lends no GPUs of benches. An administrator sets "
    "build.lend_idle to true."
)

STEPS: Mapping[ParkState, ParkStep] = MappingProxyType(
    {
        ParkState.RUNNING: ParkStep.RETURNING,
        ParkState.LOCKING: ParkStep.PARKING,
        ParkState.CHECKPOINTING: ParkStep.PARKING,
        ParkState.VACATING: ParkStep.PARKING,
        ParkState.PARKED: ParkStep.PARKED,
        ParkState.ASKING: ParkStep.RETURNING,
        ParkState.RETURNING: ParkStep.RETURNING,
        ParkState.RESTORING: ParkStep.RETURNING,
        ParkState.UNLOCKING: ParkStep.RETURNING,
        ParkState.LOST: ParkStep.LOST,
        ParkState.ENDED: ParkStep.LOST,
    }
)


def not_parkable(closed: Sequence[str]) -> str:
    """Return why a bench cannot be parked.

    >>> not_parkable(["one GPU: its bench holds 2 GPUs (just 1)"])
    'This bench cannot be parked: one GPU: its bench holds 2 GPUs (just 1). It goes on as it is.'
    """
    return f"This bench cannot be parked: {'; '.join(closed)}. It goes on as it is."


def how_it_stands(
    state: ParkState,
    *,
    whose: str = "Your",
    wanted: bool,
    borrowed: bool,
    pausable: bool,
    grace_s: float,
) -> str:
    """Return the state of a parked bench and what comes next.

    Args:
        whose: ``Your`` for its owner, ``Its`` for other callers. ``wanted``: it is to return.
            ``borrowed``: a job uses its GPU, ``pausable`` or not.

    >>> how_it_stands(ParkState.ASKING, wanted=True, borrowed=True, pausable=True, grace_s=20)
    'Your GPU comes back: the training job on it is being paused, which takes up to 20 s.'
    """
    match state, STEPS[state]:
        case _, ParkStep.PARKING:
            after = " It comes back right after." if wanted else ""
            return f"Its GPU memory is being copied into the machine's memory.{after}"
        case _, ParkStep.LOST:
            return "What its kernel had on the GPU is lost: restart the kernel. Files are kept."
        case ParkState.PARKED, _ if not wanted:
            return (
                "Its GPU is lent, and its kernel waits in the machine's memory until it is brought "
                "back."
            )
        case ((ParkState.PARKED | ParkState.ASKING), _) if borrowed:
            if pausable:
                return (
                    f"{whose} GPU comes back: the training job on it is being paused, which takes "
                    f"up to {exactly(grace_s)}."
                )
            return f"{whose} GPU comes back when the training job on it ends: it may not be paused."
        case ((ParkState.PARKED | ParkState.ASKING | ParkState.RETURNING), _):
            return f"{whose} GPU comes back as soon as NVML says that its memory is free."
    return f"{whose} GPU comes back: its memory is being copied onto it."


def lost(user: str, gpus: Sequence[str]) -> str:
    """Return the notification to administrators about a kernel that could not be restored."""
    return (
        f"The parked kernel of {user} on {', '.join(gpus)} could not be brought back: what it had "
        "on the GPU is lost. Its owner restarts it; the log of the scheduler has the driver's word."
    )


def unwritten(why: str) -> str:
    """Return the notification to administrators if the list of parked benches cannot be written."""
    return f"The list of parked benches cannot be written ({why}): make room on the disk."
