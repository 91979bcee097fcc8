"""Texts about parked benches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from benchpool_scheduler.contract import ParkStep
from benchpool_scheduler.core.benches.parking import ParkState
from benchpool_scheduler.phrases import exactly

OFF = (
    "This pool parks no benches. Parking is experimental, works on one machine with NVIDIA GPUs, "
    "and needs build.parking: true from an administrator (`benchpool doctor` lists its needs)."
)
NOT_LENT = (
    "Parking would have no effect: this pool lends no GPUs of benches. An administrator can set "
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

    >>> not_parkable(["one GPU: its bench has 2 GPUs (must be 1)"])
    'This bench cannot be parked: one GPU: its bench has 2 GPUs (must be 1). It goes on unchanged.'
    """
    return f"This bench cannot be parked: {'; '.join(closed)}. It goes on unchanged."


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
            after = " It is restored right after." if wanted else ""
            return f"Its GPU memory is being copied into the machine's memory.{after}"
        case _, ParkStep.LOST:
            return "The GPU memory of its kernel is lost. Restart the kernel. Files are kept."
        case ParkState.PARKED, _ if not wanted:
            return (
                "Its GPU is lent, and its kernel waits in the machine's memory until it is "
                "restored."
            )
        case ((ParkState.PARKED | ParkState.ASKING), _) if borrowed:
            if pausable:
                return (
                    f"{whose} GPU comes back: the training job on it is being paused, which takes "
                    f"up to {exactly(grace_s)}."
                )
            return f"{whose} GPU comes back when the training job on it ends: it may not be paused."
        case ((ParkState.PARKED | ParkState.ASKING | ParkState.RETURNING), _):
            return f"{whose} GPU comes back as soon as NVML reports its memory as free."
    return f"{whose} GPU comes back: its memory is being copied onto it."


def lost(user: str, gpus: Sequence[str]) -> str:
    """Return the notification to administrators about a kernel that could not be restored."""
    return (
        f"The parked kernel of {user} on {', '.join(gpus)} could not be restored: its GPU memory "
        "is lost. Its owner must restart it. The log of the scheduler has the driver's message."
    )


def unwritten(why: str) -> str:
    """Return the notification to administrators if the list of parked benches cannot be written."""
    return f"The list of parked benches cannot be written ({why}). Free disk space."
