"""A scripted NVML library: what the driver answers is data, faults included.

It takes the place of the library object inside the binding, so the binding's own code runs, with
its structures and its by-reference arguments.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import Array, c_char
from dataclasses import dataclass, field
from typing import Any

import pynvml

SUCCESS = 0
RESERVED_MIB = 600
"""What the driver keeps for itself, which the first version counts as used."""
LOST = pynvml.NVML_ERROR_GPU_IS_LOST
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
MISMATCH = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
UNKNOWN = pynvml.NVML_ERROR_UNKNOWN


@dataclass
class ScriptedGpu:
    """One GPU; a slice of a GPU is one too. ``fails`` maps function names to error numbers.

    ``nvlinks`` holds the bus address at the other end of each link; ``ancestors`` the driver's
    word for the nearest common ancestor with other GPUs; ``cores`` the near processors, as bits.
    ``minor`` is the number of its device file, ``instances`` a slice's GPU and compute instance.
    ``utilisation`` holds the driver's samples, time in microseconds and per cent; the rest of what
    it does is None where it is not supported. ``gpm`` is the share of multiprocessors at work.
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
    xids: list[int] = field(default_factory=list)

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
        self.calls: list[str] = []
        self.gpm_of = 0
        self.waiting, self.idle = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Callable[..., int]:
        answer = _ANSWERS.get(name)
        if answer is None or name in self.__dict__.get("missing", ()):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            return self.fails.get(name) or answer(self, *arguments)

        return call

    def install(self, monkeypatch: Any) -> None:
        """Put this in the binding's place for the duration of a test."""
        monkeypatch.setattr(pynvml, "nvmlLib", self)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    def known(self) -> list[ScriptedGpu]:
        """Return GPUs and slices; a handle is the position in this list, from 1."""
        slices = [part for gpu in self.gpus for part in gpu.slices or () if part is not None]
        return [*self.gpus, *slices]

    def gpu(self, handle: Any) -> ScriptedGpu:
        """Return what a handle stands for."""
        return self.known()[_address(handle) - 1]


def _address(handle: Any) -> int:
    from ctypes import c_void_p, cast

    return cast(handle, c_void_p).value or 0


def _point(reference: Any, address: int) -> None:
    from ctypes import c_void_p, cast, memmove, pointer, sizeof

    value = c_void_p(address)
    memmove(cast(reference, c_void_p), pointer(value), sizeof(value))


def _init(library: ScriptedLibrary, _flags: int) -> int:
    return library.init_result


def _shutdown(_library: ScriptedLibrary) -> int:
    return SUCCESS


def _count(library: ScriptedLibrary, count: Any) -> int:
    count._obj.value = len(library.gpus)
    return SUCCESS


def _handle(library: ScriptedLibrary, index: Any, device: Any) -> int:
    _point(device, index.value + 1)
    gpu: ScriptedGpu = library.gpus[index.value]
    return gpu.fails.get("nvmlDeviceGetHandleByIndex_v2", SUCCESS)


def _by_uuid(library: ScriptedLibrary, uuid: Any, device: Any) -> int:
    for position, gpu in enumerate(library.known()):
        if gpu.uuid.encode() == uuid.value:
            _point(device, position + 1)
            return SUCCESS
    return int(pynvml.NVML_ERROR_NOT_FOUND)


def _text(name: str, what: Callable[[ScriptedGpu], str]) -> Callable[..., int]:
    def answer(library: ScriptedLibrary, handle: Any, buffer: Array[c_char], _size: Any) -> int:
        gpu = library.gpu(handle)
        buffer.value = what(gpu).encode()
        return gpu.fails.get(name, SUCCESS)

    return answer


def _memory(library: ScriptedLibrary, handle: Any, memory: Any) -> int:
    gpu = library.gpu(handle)
    memory._obj.total = gpu.memory_mib * 1024 * 1024
    memory._obj.used = (gpu.used_mib + RESERVED_MIB) * 1024 * 1024
    return gpu.fails.get("nvmlDeviceGetMemoryInfo", SUCCESS)


def _processes(name: str) -> Callable[..., int]:
    def answer(library: ScriptedLibrary, handle: Any, count: Any, array: Any) -> int:
        gpu = library.gpu(handle)
        if name in gpu.fails:
            return gpu.fails[name]
        room, count._obj.value = count._obj.value, len(gpu.pids)
        if room < len(gpu.pids):
            return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        for position, pid in enumerate(gpu.pids):
            array[position].pid = pid
            # Inside a container the driver does not tell the memory.
            array[position].usedGpuMemory = pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value
        return SUCCESS

    return answer


def _mig_mode(library: ScriptedLibrary, handle: Any, current: Any, pending: Any) -> int:
    gpu = library.gpu(handle)
    current._obj.value = pending._obj.value = int(gpu.slices is not None)
    return gpu.fails.get("nvmlDeviceGetMigMode", SUCCESS)


def _most_slices(library: ScriptedLibrary, handle: Any, count: Any) -> int:
    count._obj.value = len(library.gpu(handle).slices or ())
    return SUCCESS


def _slice(library: ScriptedLibrary, handle: Any, index: Any, device: Any) -> int:
    part = (library.gpu(handle).slices or ())[index.value]
    if part is None:
        return int(pynvml.NVML_ERROR_NOT_FOUND)
    _point(device, next(n for n, gpu in enumerate(library.known()) if gpu is part) + 1)
    return SUCCESS


def _pci(library: ScriptedLibrary, handle: Any, pci: Any) -> int:
    pci._obj.busId = library.gpu(handle).bus.encode()
    return SUCCESS


def _link_state(library: ScriptedLibrary, handle: Any, link: int, active: Any) -> int:
    gpu = library.gpu(handle)
    if link >= len(gpu.nvlinks):
        return int(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    active._obj.value = 1
    return SUCCESS


def _link_end(library: ScriptedLibrary, handle: Any, link: int, pci: Any) -> int:
    pci._obj.busId = library.gpu(handle).nvlinks[link].upper().encode()
    return SUCCESS


def _ancestor(library: ScriptedLibrary, one: Any, other: Any, level: Any) -> int:
    level._obj.value = library.gpu(one).ancestors.get(library.gpu(other).uuid, 0)
    known = library.gpu(other).uuid in library.gpu(one).ancestors
    return SUCCESS if known else NOT_SUPPORTED


def _affinity(library: ScriptedLibrary, handle: Any, size: int, mask: Any) -> int:
    cores = library.gpu(handle).cores
    for word in range(size):
        mask._obj[word] = (cores >> (64 * word)) & (2**64 - 1)
    return SUCCESS if cores else NOT_SUPPORTED


def _number(what: Callable[[ScriptedGpu], int | None]) -> Callable[..., int]:
    def answer(library: ScriptedLibrary, handle: Any, number: Any) -> int:
        known = what(library.gpu(handle))
        number._obj.value = known or 0
        return SUCCESS if known is not None else NOT_SUPPORTED

    return answer


def _memory_v2(library: ScriptedLibrary, handle: Any, memory: Any) -> int:
    gpu = library.gpu(handle)
    memory._obj.total = gpu.memory_mib * 1024 * 1024
    memory._obj.used = gpu.used_mib * 1024 * 1024
    return gpu.fails.get("nvmlDeviceGetMemoryInfo_v2", SUCCESS)


def _samples(
    library: ScriptedLibrary, handle: Any, _kind: Any, seen: Any, kind: Any, count: Any, array: Any
) -> int:
    """Tell those after a time; as the driver, whether there are any is asked first."""
    gpu = library.gpu(handle)
    known = gpu.utilisation
    if known is None:
        return int(NOT_SUPPORTED)
    after = int(seen.value)
    fresh = [it for it in known if it[0] > after]
    if not fresh:
        return int(pynvml.NVML_ERROR_NOT_FOUND)
    kind._obj.value, count._obj.value = pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, len(fresh)
    for position, (at, percent) in enumerate(fresh if array is not None else ()):
        array[position].timeStamp = at
        array[position].sampleValue.uiVal = percent
    return SUCCESS


def _rates(library: ScriptedLibrary, handle: Any, rates: Any) -> int:
    percent = library.gpu(handle).percent_now
    rates._obj.gpu = percent or 0
    return SUCCESS if percent is not None else NOT_SUPPORTED


def _celsius(library: ScriptedLibrary, handle: Any, _sensor: Any, degrees: Any) -> int:
    known = library.gpu(handle).celsius
    degrees._obj.value = known or 0
    return SUCCESS if known is not None else NOT_SUPPORTED


def _gpm_support(library: ScriptedLibrary, handle: Any, support: Any) -> int:
    support._obj.isSupportedDevice = int(library.gpu(handle).gpm is not None)
    return SUCCESS


def _made(library: ScriptedLibrary, sample: Any) -> int:
    _point(sample, 1)
    return SUCCESS


def _gpm_get(library: ScriptedLibrary, handle: Any, _sample: Any) -> int:
    library.gpm_of = _address(handle)
    return SUCCESS


def _gpm_metrics(library: ScriptedLibrary, both: Any) -> int:
    share = library.known()[library.gpm_of - 1].gpm or 0.0
    both._obj.metrics[0].nvmlReturn = SUCCESS
    both._obj.metrics[0].value = 100.0 * share
    return SUCCESS


def _done(_library: ScriptedLibrary, *_: Any) -> int:
    return SUCCESS


def _event(library: ScriptedLibrary, _events: Any, data: Any, _timeout: Any) -> int:
    """Tell each error once; without one, answer as a driver whose time is over."""
    for position, gpu in enumerate(library.known()):
        if gpu.xids:
            _point(data, position + 1)  # its first field
            data._obj.eventType = pynvml.nvmlEventTypeXidCriticalError
            data._obj.eventData = gpu.xids.pop(0)
            return SUCCESS
    library.idle.set()
    library.waiting.wait(0.01)
    return int(pynvml.NVML_ERROR_TIMEOUT)


_ANSWERS: Mapping[str, Callable[..., int]] = {
    "nvmlInitWithFlags": _init,
    "nvmlShutdown": _shutdown,
    "nvmlDeviceGetCount_v2": _count,
    "nvmlDeviceGetHandleByIndex_v2": _handle,
    "nvmlDeviceGetHandleByUUID": _by_uuid,
    "nvmlDeviceGetUUID": _text("nvmlDeviceGetUUID", lambda gpu: gpu.uuid),
    "nvmlDeviceGetName": _text("nvmlDeviceGetName", lambda gpu: gpu.model),
    "nvmlDeviceGetMemoryInfo": _memory,
    "nvmlDeviceGetComputeRunningProcesses_v3": _processes(
        "nvmlDeviceGetComputeRunningProcesses_v3"
    ),
    "nvmlDeviceGetComputeRunningProcesses_v2": _processes(
        "nvmlDeviceGetComputeRunningProcesses_v2"
    ),
    "nvmlDeviceGetMigMode": _mig_mode,
    "nvmlDeviceGetMaxMigDeviceCount": _most_slices,
    "nvmlDeviceGetMigDeviceHandleByIndex": _slice,
    "nvmlDeviceGetMinorNumber": _number(lambda gpu: gpu.minor),
    "nvmlDeviceGetGpuInstanceId": _number(lambda one: one.instances and one.instances[0]),
    "nvmlDeviceGetComputeInstanceId": _number(lambda one: one.instances and one.instances[1]),
    "nvmlDeviceGetPciInfo_v3": _pci,
    "nvmlDeviceGetNvLinkState": _link_state,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _link_end,
    "nvmlDeviceGetTopologyCommonAncestor": _ancestor,
    "nvmlDeviceGetCpuAffinity": _affinity,
    "nvmlDeviceGetMemoryInfo_v2": _memory_v2,
    "nvmlDeviceGetSamples": _samples,
    "nvmlDeviceGetUtilizationRates": _rates,
    "nvmlDeviceGetPowerUsage": _number(lambda gpu: gpu.power_mw),
    "nvmlDeviceGetTotalEnergyConsumption": _number(lambda gpu: gpu.energy_mj),
    "nvmlDeviceGetTemperature": _celsius,
    "nvmlDeviceGetCurrentClocksEventReasons": _number(lambda gpu: gpu.clock_reasons),
    "nvmlDeviceGetCurrentClocksThrottleReasons": _number(lambda gpu: gpu.clock_reasons),
    "nvmlGpmQueryDeviceSupport": _gpm_support,
    "nvmlGpmSampleAlloc": _made,
    "nvmlGpmSampleGet": _gpm_get,
    "nvmlGpmSampleFree": _done,
    "nvmlGpmMetricsGet": _gpm_metrics,
    "nvmlEventSetCreate": _made,
    "nvmlDeviceRegisterEvents": _done,
    "nvmlEventSetWait_v2": _event,
    "nvmlEventSetFree": _done,
}
