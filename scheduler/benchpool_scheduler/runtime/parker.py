"""Port to parking: moving the CUDA state of kernels to host memory and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from benchpool_scheduler.core.benches.parking import ParkState


class Parkable(Struct, frozen=True):
    """A process whose CUDA state may be moved to host memory.

    Attributes:
        process: Its identity (``worker.process_identity``), because pids are reused.
        gpu: UUID of the GPU that holds its memory, and to which it is restored.
        used: Bytes of GPU memory that were in use on the GPU.
    """

    pid: int
    process: str
    gpu: str
    used: int


@dataclass(frozen=True, slots=True)
class ParkLook:
    """Whether the kernel on some GPUs may be parked.

    Attributes:
        one: The kernel, or None if it may not be parked. ``closed``: the closed gates, each with
            number and limit.
    """

    one: Parkable | None
    closed: Sequence[str] = ()


class Parker(Protocol):
    """Parking; its answers are the driver's, and no call raises."""

    async def look(self, gpus: Sequence[str], counted: int) -> ParkLook:
        """Return the kernel on the GPUs of a bench.

        Args:
            counted: Bytes of host memory reserved for images in progress.
        """

    async def step(self, state: ParkState, one: Parkable) -> ParkState:
        """Run the action of a state, and return the next state.

        A parked process is restored if its own bench uses its GPU meanwhile.
        """

    async def found(self, one: Parkable, *, holds_gpu: bool) -> ParkState:
        """Return the state of a kernel, according to the driver."""

    async def close(self) -> None:
        """Release the driver."""
