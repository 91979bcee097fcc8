"""The port to the driver's checkpoint calls, and what goes wrong with them.

Source: CUDA Driver API reference, "CUDA Checkpointing".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from benchpool_scheduler.core.benches.parking import CudaState


class CallFailed(Exception):
    """The driver refused a call, or cannot be asked.

    Attributes:
        call: Its name. ``code``: the driver's number (``CUresult``), None for none. ``name``: the
            driver's word for that, or what else is wrong.
    """

    def __init__(self, call: str, code: int | None, name: str) -> None:
        number = "" if code is None else f" ({code})"
        super().__init__(f"{call}: {name}{number}")
        self.call, self.code, self.name = call, code, name


class CallHung(CallFailed):
    """The driver did not answer within the time that was given to it."""

    def __init__(self, call: str, seconds: float) -> None:
        super().__init__(call, None, f"no answer within {seconds:g} s")


class CheckpointDriver(Protocol):
    """What the driver does with the CUDA state of a process of this machine.

    Errors of every call: CallFailed, CallHung.
    """

    def version(self) -> int:
        """Return the CUDA version that the driver offers, such as 13000."""

    def state(self, pid: int) -> CudaState:
        """Return the state of a process."""

    def lock(self, pid: int) -> None:
        """Keep a running process from calling CUDA, and wait until its work is done."""

    def checkpoint(self, pid: int) -> None:
        """Copy the GPU memory of a locked process to host memory and let go of the GPU."""

    def restore(self, pid: int, gpus: Mapping[str, str]) -> None:
        """Bring a checkpointed process back; it is locked then.

        Args:
            gpus: The UUID of its new GPU by that of the old one; none for the same GPU.
        """

    def unlock(self, pid: int) -> None:
        """Let a locked process call CUDA again."""
