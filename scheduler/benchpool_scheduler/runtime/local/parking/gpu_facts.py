"""GPU facts of NVML on which parking depends: a GPU is lent and reclaimed only by these facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pynvml

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """Bytes of a GPU's memory: the total that programs can use, and the part in use."""

    total: int
    used: int

    @property
    def free(self) -> int:
        """Bytes that are not in use."""
        return self.total - self.used


class GpuFacts(Protocol):
    """Queries about the GPUs; None stands for an unknown answer."""

    def driver(self) -> str | None:
        """Return the version of the driver."""

    def whole_gpus(self) -> Sequence[str]:
        """Return the UUIDs of the GPUs without MIG."""

    def memory(self, gpu: str) -> GpuMemory | None:
        """Return the memory of a GPU."""

    def processes(self, gpu: str) -> Sequence[int] | None:
        """Return the processes that compute on a GPU."""


class NvmlFacts:
    """``GpuFacts`` by NVML."""

    def driver(self) -> str | None:
        """See ``GpuFacts``."""
        return _asked(lambda: str(pynvml.nvmlSystemGetDriverVersion()))

    def whole_gpus(self) -> Sequence[str]:
        """See ``GpuFacts``."""
        return _asked(lambda: [str(pynvml.nvmlDeviceGetUUID(it)) for it in _undivided()]) or ()

    def memory(self, gpu: str) -> GpuMemory | None:
        """See ``GpuFacts``."""

        def ask() -> GpuMemory:
            found = pynvml.nvmlDeviceGetMemoryInfo(
                pynvml.nvmlDeviceGetHandleByUUID(gpu), version=pynvml.nvmlMemory_v2
            )
            return GpuMemory(int(found.total) - int(found.reserved), int(found.used))

        return _asked(ask)

    def processes(self, gpu: str) -> Sequence[int] | None:
        """See ``GpuFacts``."""

        def ask() -> Sequence[int]:
            handle = pynvml.nvmlDeviceGetHandleByUUID(gpu)
            found = pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
            return sorted({int(process.pid) for process in found})

        return _asked(ask)


def _undivided() -> Iterator[Any]:
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        try:
            divided = pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE
        except pynvml.NVMLError_NotSupported:
            divided = False
        if not divided:
            yield handle


@contextmanager
def _started() -> Iterator[None]:
    """Start NVML, and end it afterwards.

    NVML counts its starts, so other users of it in this process are not affected.
    """
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _asked(ask: Callable[[], T]) -> T | None:
    try:
        with _started():
            return ask()
    except pynvml.NVMLError:
        return None
