"""A scripted NVML library: what the driver answers is data, faults included.

It takes the place of the library object inside the binding, so the binding's own code runs, with
its structures and its by-reference arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import Array, c_char
from dataclasses import dataclass, field
from typing import Any

import pynvml

SUCCESS = 0
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
}
