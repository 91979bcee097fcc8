"""Kernels, GPUs and borrowers in memory: a scripted driver and NVML for random parking histories.

The world holds the true state of each GPU, whatever the driver answers. It raises AssertionError at
an event that must never happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from benchpool_scheduler.core.benches.parking import CudaState, ParkState
from benchpool_scheduler.runtime.local.parking.driver import CallFailed, CallHung
from benchpool_scheduler.runtime.local.parking.gpu_facts import GpuMemory
from benchpool_scheduler.runtime.local.parking.steps import Hands
from benchpool_scheduler.runtime.parker import Parkable

Fault = Literal["", "refused", "hung", "failed", "dies", "half"]
FAULTS: Sequence[Fault] = ("", "", "", "refused", "hung", "failed", "dies", "half")
"""Results of the next call; after ``half`` the call is carried out and the answer is lost."""

GIB = 2**30
TOTAL = 16 * GIB


@dataclass
class Kernel:
    """One kernel: its true state, and its state in the table."""

    one: Parkable
    cuda: CudaState = CudaState.RUNNING
    there: bool = True
    broken: bool = False
    state: ParkState = ParkState.RUNNING

    def on_gpu(self) -> bool:
        """Return whether its memory is on its GPU."""
        return self.there and self.cuda is not CudaState.CHECKPOINTED


@dataclass
class World:
    """The true state; ``next_fault`` is drawn for each call of the driver.

    Attributes:
        borrowers: Bytes that a job uses, or has left behind, by GPU.
        jobs: GPUs on which a job computes.
    """

    kernels: dict[int, Kernel]
    next_fault: Callable[[], Fault]
    granted: Callable[[Parkable], bool]
    borrowers: dict[str, int] = field(default_factory=dict)
    jobs: set[str] = field(default_factory=set)
    hung: bool = False

    def borrowed(self, gpu: str) -> bool:
        """Return whether a job computes on a GPU."""
        return gpu in self.jobs

    def hands(self) -> Hands:
        """Return the functions that act in this world."""
        here = self._is_there
        return Hands(
            self, self, self.granted, here, lambda *_: False, lambda _: None, lambda _: None
        )

    def _is_there(self, one: Parkable) -> bool:
        return self.kernels[one.pid].there

    # ------------------------------------------------------------------ the driver

    def version(self) -> int:
        """See ``CheckpointDriver``."""
        return 13000

    def state(self, pid: int) -> CudaState:
        """See ``CheckpointDriver``."""
        if self.hung:
            self.hung = False
            raise CallHung("state", 1.0)
        return self.kernels[pid].cuda

    def lock(self, pid: int) -> None:
        """See ``CheckpointDriver``."""
        self._call(pid, CudaState.RUNNING, CudaState.LOCKED)

    def checkpoint(self, pid: int) -> None:
        """See ``CheckpointDriver``."""
        self._call(pid, CudaState.LOCKED, CudaState.CHECKPOINTED)

    def restore(self, pid: int, gpus: Mapping[str, str]) -> None:
        """See ``CheckpointDriver``; a lack of memory breaks the process permanently."""
        kernel = self.kernels[pid]
        gpu = kernel.one.gpu
        assert not self.borrowers.get(gpu), f"{pid} came back while somebody was on {gpu}"
        assert not kernel.broken, f"{pid} was restored again after a refusal"
        kernel.broken = True
        self._call(pid, CudaState.CHECKPOINTED, CudaState.LOCKED)
        kernel.broken = False

    def unlock(self, pid: int) -> None:
        """See ``CheckpointDriver``."""
        self._call(pid, CudaState.LOCKED, CudaState.RUNNING)

    def _call(self, pid: int, begins: CudaState, ends: CudaState) -> None:
        kernel, fault = self.kernels[pid], self.next_fault()
        if kernel.cuda is not begins:
            raise CallFailed("call", 401, "CUDA_ERROR_ILLEGAL_STATE")
        match fault:
            case "refused":
                raise CallFailed("call", 600, "CUDA_ERROR_NOT_READY")
            case "hung":
                self.hung = True
                raise CallHung("call", 1.0)
            case "failed":
                kernel.cuda = CudaState.FAILED
                raise CallFailed("call", 999, "CUDA_ERROR_UNKNOWN")
            case "dies":
                kernel.there = False
                raise CallFailed("call", 304, "CUDA_ERROR_OPERATING_SYSTEM")
            case "half":
                kernel.cuda = ends
                raise CallHung("call", 1.0)
        kernel.cuda = ends

    # ------------------------------------------------------------------ NVML

    def driver(self) -> str | None:
        """See ``GpuFacts``."""
        return "580.95.05"

    def whole_gpus(self) -> Sequence[str]:
        """See ``GpuFacts``."""
        return sorted({kernel.one.gpu for kernel in self.kernels.values()})

    def memory(self, gpu: str) -> GpuMemory | None:
        """See ``GpuFacts``."""
        on = (it.one.used for it in self.kernels.values() if it.on_gpu() and it.one.gpu == gpu)
        return GpuMemory(TOTAL, sum(on) + self.borrowers.get(gpu, 0))

    def processes(self, gpu: str) -> Sequence[int] | None:
        """See ``GpuFacts``: memory that a job left behind has no process."""
        return sorted(pid for pid, it in self.kernels.items() if it.on_gpu() and it.one.gpu == gpu)
