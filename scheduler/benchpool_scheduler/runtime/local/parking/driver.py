"""Port to the driver's checkpoint calls, and their errors.

Source: CUDA Driver API reference, "CUDA Checkpointing".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from benchpool_scheduler.core.benches.parking import CudaState


class CallFailed(Exception):
    """The driver rejected a call, or cannot be called.

    Attributes:
        call: Name of the call. ``code``: the driver's ``CUresult``, or None. ``name``: the driver's
            name of that code, or another description of the error.
    """

    def __init__(self, call: str, code: int | None, name: str) -> None:
        number = "" if code is None else f" ({code})"
        super().__init__(f"{call}: {name}{number}")
        self.call, self.code, self.name = call, code, name


class CallHung(CallFailed):
    """The driver did not answer within the timeout."""

    def __init__(self, call: str, seconds: float) -> None:
        super().__init__(call, None, f"no answer within {seconds:g} s")


class CheckpointDriver(Protocol):
    """Checkpoint calls for the CUDA state of processes on this machine.

    Every call may raise CallFailed or CallHung.
    """

    def version(self) -> int:
        """Return the CUDA version that the driver supports, such as 13000."""

    def state(self, pid: int) -> CudaState:
        """Return the state of a process."""

    def lock(self, pid: int) -> None:
        """Block CUDA calls of a running process, and wait until its work is done."""

    def checkpoint(self, pid: int) -> None:
        """Copy the GPU memory of a locked process to host memory and release the GPU."""

    def restore(self, pid: int, gpus: Mapping[str, str]) -> None:
        """Restore a checkpointed process, which is locked afterwards.

        Args:
            gpus: UUID of the new GPU by that of the old one; empty for the same GPU.
        """

    def unlock(self, pid: int) -> None:
        """Allow CUDA calls of a locked process again."""
