"""A scripted NVML library: what the driver answers is data, faults included.

It takes the place of the library object inside the binding, so the binding's own code runs, with
its structures and its by-reference arguments.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pynvml

from benchpool_support.nvml_answers import ANSWERS, SUCCESS, address
from benchpool_support.nvml_answers import NOT_SUPPORTED as NOT_SUPPORTED
from benchpool_support.nvml_answers import RESERVED_MIB as RESERVED_MIB

LOST = pynvml.NVML_ERROR_GPU_IS_LOST
MISMATCH = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
UNKNOWN = pynvml.NVML_ERROR_UNKNOWN


@dataclass
class ScriptedGpu:
    """One GPU; a slice of a GPU is one too. ``fails`` maps function names to error numbers.

    ``nvlinks`` holds the bus address at the other end of each link; ``ancestors`` the driver's
    word for the nearest common ancestor with other GPUs; ``cores`` the near processors, as bits.
    ``minor`` is the number of its device file, ``instances`` a slice's GPU and compute instance.
    ``utilisation`` holds the driver's samples, time in microseconds and per cent; the rest of what
    it does is None where it is not supported. ``gpm`` is the share of multiprocessors at work,
    ``gpm_active`` that of the time in which something ran, the same where it is None. So many
    processes more come between being asked how many there are and which: ``grows``.
    """

    uuid: str
    model: str = "NVIDIA A100-SXM4-80GB"
    memory_mib: int = 81920
    pids: Sequence[int] = ()
    slices: Sequence[ScriptedGpu | None] | None = None
    fails: Mapping[str, int] = field(default_factory=dict)
    nvlinks: Sequence[str] = ()
    ancestors: Mapping[str, int] = field(default_factory=dict)
    cores: int = 0
    minor: int | None = None
    instances: tuple[int, int] | None = None
    used_mib: int = 0
    utilisation: Sequence[tuple[int, int]] | None = None
    percent_now: int | None = None
    power_mw: int | None = None
    energy_mj: int | None = None
    celsius: int | None = None
    clock_reasons: int | None = None
    gpm: float | None = None
    gpm_active: float | None = None
    xids: list[int] = field(default_factory=list)
    grows: int = 0
    mig_mode: int | None = None
    event_type: int = pynvml.nvmlEventTypeXidCriticalError

    @property
    def bus(self) -> str:
        """Its bus address."""
        return f"0000:{self.uuid}"


class ScriptedLibrary:
    """The library object: one attribute per C function; missing ones are as in an old driver."""

    def __init__(self, gpus: Sequence[ScriptedGpu], *, missing: Sequence[str] = ()) -> None:
        self.gpus = list(gpus)
        self.missing = frozenset(missing)
        self.init_result = SUCCESS
        self.fails: dict[str, int] = {}
        self.slow_ms: dict[str, float] = {}
        self._names: list[str] = []
        self.calls: list[str] = []
        self.gpm_of: dict[int, ScriptedGpu] = {}
        self.made = 0
        self.waiting, self.idle = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Callable[..., int]:
        answer = ANSWERS.get(name)
        if answer is None or name in self.__dict__.get("missing", ()):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name in self.missing:  # the binding keeps what it has found once
                return int(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
            time.sleep(self.slow_ms.get(name, 0.0) / 1000)
            try:
                return (
                    self.fails.get(name) or self._fault(name, arguments) or answer(self, *arguments)
                )
            except NoSuchHandle:
                return int(pynvml.NVML_ERROR_INVALID_ARGUMENT)

        return call

    def _fault(self, name: str, arguments: Sequence[Any]) -> int:
        about = arguments[0] if arguments else None
        of_gpu = isinstance(about, pynvml.c_nvmlDevice_t)
        return self.gpu(about).fails.get(name, SUCCESS) if of_gpu else SUCCESS

    def install(self, monkeypatch: Any) -> None:
        """Put this in the binding's place for the duration of a test."""
        monkeypatch.setattr(pynvml, "nvmlLib", self)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    def known(self) -> list[ScriptedGpu]:
        """Return GPUs and slices."""
        slices = [part for gpu in self.gpus for part in gpu.slices or () if part is not None]
        return [*self.gpus, *slices]

    def handle(self, gpu: ScriptedGpu) -> int:
        """Return the handle of a GPU: it stays, whatever becomes of the order."""
        if gpu.uuid not in self._names:
            self._names.append(gpu.uuid)
        return self._names.index(gpu.uuid) + 1

    def gpu(self, handle: Any) -> ScriptedGpu:
        """Return what a handle stands for."""
        number = address(handle)
        for gpu in self.known():
            if 0 < number <= len(self._names) and gpu.uuid == self._names[number - 1]:
                return gpu
        raise NoSuchHandle

    def parent(self, part: ScriptedGpu) -> ScriptedGpu | None:
        """Return the GPU that this is a slice of."""
        return next((gpu for gpu in self.gpus if any(it is part for it in gpu.slices or ())), None)


class NoSuchHandle(Exception):
    """A handle of a GPU that is not there any more."""
