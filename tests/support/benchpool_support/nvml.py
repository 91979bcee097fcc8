"""A scripted NVML library: the driver's answers, including errors, are data.

It replaces the library object inside the binding. The binding's own code therefore runs, with its
structures and its by-reference arguments.
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
    """One GPU, or a slice of a GPU. ``fails`` maps function names to error numbers.

    ``nvlinks`` holds the bus address at the other end of each link. ``ancestors`` holds the
    driver's value for the nearest common ancestor with other GPUs, and ``cores`` the near
    processors as bits. ``minor`` is the number of its device file, ``instances`` a slice's GPU and
    compute instance. ``utilisation`` holds the driver's samples, with time in microseconds and per
    cent. The other activity values are None if they are not supported. ``gpm`` is the share of busy
    multiprocessors. ``gpm_active`` is the share of time with any activity, and equals ``gpm`` if it
    is None. ``grows`` is the number of processes that start between the query for their count and
    the query for the list.
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
    """Library object with one attribute per C function; ``missing`` ones simulate an old driver."""

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
            if name in self.missing:  # the binding caches functions that it has found
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
        """Replace the library in the binding for the duration of a test."""
        monkeypatch.setattr(pynvml, "nvmlLib", self)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    def known(self) -> list[ScriptedGpu]:
        """Return GPUs and slices."""
        slices = [part for gpu in self.gpus for part in gpu.slices or () if part is not None]
        return [*self.gpus, *slices]

    def handle(self, gpu: ScriptedGpu) -> int:
        """Return the handle of a GPU, which stays the same when the order changes."""
        if gpu.uuid not in self._names:
            self._names.append(gpu.uuid)
        return self._names.index(gpu.uuid) + 1

    def gpu(self, handle: Any) -> ScriptedGpu:
        """Return the GPU of a handle."""
        number = address(handle)
        for gpu in self.known():
            if 0 < number <= len(self._names) and gpu.uuid == self._names[number - 1]:
                return gpu
        raise NoSuchHandle

    def parent(self, part: ScriptedGpu) -> ScriptedGpu | None:
        """Return the GPU that contains this slice, or None."""
        return next((gpu for gpu in self.gpus if any(it is part for it in gpu.slices or ())), None)


class NoSuchHandle(Exception):
    """The handle's GPU does not exist any more."""
