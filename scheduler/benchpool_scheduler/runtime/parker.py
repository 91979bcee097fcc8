"""The port to what parks kernels: their CUDA state goes to host memory and comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from benchpool_scheduler.core.benches.parking import ParkState


class Parkable(Struct, frozen=True):
    """A process whose CUDA state may go to host memory.

    Attributes:
        process: Its identity (``worker.process_identity``): a pid alone is soon used again.
        gpu: The UUID of the GPU where its memory is, and where it comes back.
        used: Bytes of GPU memory that were in use on it.
    """

    pid: int
    process: str
    gpu: str
    used: int


@dataclass(frozen=True, slots=True)
class ParkLook:
    """Whether the kernel on some GPUs may be parked.

    Attributes:
        one: The kernel; None where it may not. ``closed``: why, each gate with number and limit.
    """

    one: Parkable | None
    closed: Sequence[str] = ()


class Parker(Protocol):
    """What parks; its answers are the driver's, and no call raises."""

    async def look(self, gpus: Sequence[str], counted: int) -> ParkLook:
        """Return the kernel on the GPUs of a bench.

        Args:
            counted: Bytes of host memory counted for images that are being made.
        """

    async def step(self, state: ParkState, one: Parkable) -> ParkState:
        """Do what a state asks for, and return the next one.

        One that is parked is asked back where its own bench uses its GPU meanwhile.
        """

    async def found(self, one: Parkable, *, holds_gpu: bool) -> ParkState:
        """Return where a kernel stands, as the driver says."""

    async def close(self) -> None:
        """Let go of the driver."""
