"""A parker that moves kernels to the state that a test sets, without a driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.benches.parking import ParkState
from benchpool_scheduler.runtime.parker import Parkable, ParkLook


@dataclass
class ScriptedParker:
    """Parker of kernels with 1 GiB of GPU memory.

    Attributes:
        goal: State that the next step of each kernel reaches.
    """

    goal: ParkState

    async def look(self, gpus: Sequence[str], counted: int) -> ParkLook:
        """Return a kernel that may be parked."""
        return ParkLook(Parkable(1, "kernel", gpus[0], 2**30))

    async def step(self, state: ParkState, one: Parkable) -> ParkState:
        """Return the goal. A kernel without the GPU stays so until the pool gives it back."""
        return state if state in (ParkState.PARKED, ParkState.ASKING) else self.goal

    async def found(self, one: Parkable, *, holds_gpu: bool) -> ParkState:
        """Return the goal."""
        return self.goal

    async def close(self) -> None:
        """Do nothing."""
