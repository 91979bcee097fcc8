"""Answers of the scripted driver to each function of the binding; see ``nvml``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import Array, c_char
from typing import TYPE_CHECKING, Any

import pynvml

if TYPE_CHECKING:
    from benchpool_support.nvml import ScriptedGpu, ScriptedLibrary

SUCCESS = 0
RESERVED_MIB = 600
"""Memory reserved by the driver, in MiB, which the first version counts as used."""
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED


def address(handle: Any) -> int:
    from ctypes import c_void_p, cast

    return cast(handle, c_void_p).value or 0


def point(reference: Any, address: int) -> None:
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
    gpu: ScriptedGpu = library.gpus[index.value]
    point(device, library.handle(gpu))
    return gpu.fails.get("nvmlDeviceGetHandleByIndex_v2", SUCCESS)


def _by_uuid(library: ScriptedLibrary, uuid: Any, device: Any) -> int:
    for gpu in library.known():
        if gpu.uuid.encode() == uuid.value:
            point(device, library.handle(gpu))
            return gpu.fails.get("nvmlDeviceGetHandleByUUID", SUCCESS)
    return int(pynvml.NVML_ERROR_NOT_FOUND)


def _text(name: str, what: Callable[[ScriptedGpu], str]) -> Callable[..., int]:
    def answer(library: ScriptedLibrary, handle: Any, buffer: Array[c_char], _size: Any) -> int:
        gpu = library.gpu(handle)
        buffer.value = what(gpu).encode()
        return gpu.fails.get(name, SUCCESS)

    return answer


def _system(text: str) -> Callable[..., int]:
    def answer(_library: ScriptedLibrary, buffer: Array[c_char], _size: Any) -> int:
        buffer.value = text.encode()
        return SUCCESS

    return answer


def _memory(library: ScriptedLibrary, handle: Any, memory: Any) -> int:
    gpu = library.gpu(handle)
    memory._obj.total = gpu.memory_mib * 1024 * 1024
    memory._obj.used = (gpu.used_mib + RESERVED_MIB) * 1024 * 1024
    memory._obj.free = memory._obj.total - memory._obj.used
    return gpu.fails.get("nvmlDeviceGetMemoryInfo", SUCCESS)


def _processes(name: str) -> Callable[..., int]:
    def answer(library: ScriptedLibrary, handle: Any, count: Any, array: Any) -> int:
        gpu = library.gpu(handle)
        if name in gpu.fails:
            return gpu.fails[name]
        room, pids = count._obj.value, list(gpu.pids)
        pids += [90_000 + len(pids) + more for more in range(gpu.grows if room else 0)]
        count._obj.value = len(pids)
        if room < len(pids):
            return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        for position, pid in enumerate(pids):
            array[position].pid = pid
            # Inside a container the driver does not report the memory.
            array[position].usedGpuMemory = pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value
        return SUCCESS

    return answer


def _mig_mode(library: ScriptedLibrary, handle: Any, current: Any, pending: Any) -> int:
    gpu = library.gpu(handle)
    mode = int(gpu.slices is not None) if gpu.mig_mode is None else gpu.mig_mode
    current._obj.value = pending._obj.value = mode
    return gpu.fails.get("nvmlDeviceGetMigMode", SUCCESS)


def _most_slices(library: ScriptedLibrary, handle: Any, count: Any) -> int:
    count._obj.value = len(library.gpu(handle).slices or ())
    return SUCCESS


def _slice(library: ScriptedLibrary, handle: Any, index: Any, device: Any) -> int:
    part = (library.gpu(handle).slices or ())[index.value]
    if part is None:
        return int(pynvml.NVML_ERROR_NOT_FOUND)
    point(device, library.handle(part))
    return SUCCESS


def _is_slice(library: ScriptedLibrary, handle: Any, answer: Any) -> int:
    answer._obj.value = int(library.parent(library.gpu(handle)) is not None)
    return SUCCESS


def _parent(library: ScriptedLibrary, handle: Any, device: Any) -> int:
    parent = library.parent(library.gpu(handle))
    if parent is None:
        return int(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    point(device, library.handle(parent))
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
        gpu = library.gpu(handle)
        known = what(gpu)
        number._obj.value = known or 0
        return SUCCESS if known is not None else NOT_SUPPORTED

    return answer


def _memory_v2(library: ScriptedLibrary, handle: Any, memory: Any) -> int:
    gpu = library.gpu(handle)
    memory._obj.total = gpu.memory_mib * 1024 * 1024
    memory._obj.used = gpu.used_mib * 1024 * 1024
    memory._obj.reserved = RESERVED_MIB * 1024 * 1024
    memory._obj.free = memory._obj.total - memory._obj.used - memory._obj.reserved
    return gpu.fails.get("nvmlDeviceGetMemoryInfo_v2", SUCCESS)


def _samples(
    library: ScriptedLibrary, handle: Any, _kind: Any, seen: Any, kind: Any, count: Any, array: Any
) -> int:
    """Return the samples after a time; like the driver, return their count without an array."""
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
    library.made += 1
    point(sample, library.made)
    return SUCCESS


def _gpm_get(library: ScriptedLibrary, handle: Any, sample: Any) -> int:
    library.gpm_of[address(sample)] = library.gpu(handle)
    return SUCCESS


def _gpm_of_slice(library: ScriptedLibrary, handle: Any, instance: int, sample: Any) -> int:
    for part in library.gpu(handle).slices or ():
        if part is not None and part.instances and part.instances[0] == instance:
            library.gpm_of[address(sample)] = part
            return SUCCESS
    return int(pynvml.NVML_ERROR_NOT_FOUND)


def _gpm_metrics(library: ScriptedLibrary, both: Any) -> int:
    gpu = library.gpm_of[address(both._obj.sample2)]
    sm = gpu.gpm or 0.0
    active = sm if gpu.gpm_active is None else gpu.gpm_active
    known = {pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL: active, pynvml.NVML_GPM_METRIC_SM_UTIL: sm}
    for metric in both._obj.metrics[: both._obj.numMetrics]:
        metric.nvmlReturn = SUCCESS if metric.metricId in known else NOT_SUPPORTED
        metric.value = 100.0 * known.get(metric.metricId, 0.0)
    return SUCCESS


def _done(_library: ScriptedLibrary, *_: Any) -> int:
    return SUCCESS


def _event(library: ScriptedLibrary, _events: Any, data: Any, _timeout: Any) -> int:
    """Return each error once; without an error, answer like a driver after its timeout."""
    for gpu in library.known():
        if gpu.xids:
            point(data, library.handle(gpu))  # its first field
            data._obj.eventType = gpu.event_type
            data._obj.eventData = gpu.xids.pop(0)
            return SUCCESS
    library.idle.set()
    library.waiting.wait(0.01)
    return int(pynvml.NVML_ERROR_TIMEOUT)


ANSWERS: Mapping[str, Callable[..., int]] = {
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
    "nvmlGpmMigSampleGet": _gpm_of_slice,
    "nvmlDeviceIsMigDeviceHandle": _is_slice,
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": _parent,
    "nvmlSystemGetDriverVersion": _system("999.0-fake"),
    "nvmlSystemGetNVMLVersion": _system("13.999.0-fake"),
    "nvmlGpmSampleFree": _done,
    "nvmlGpmMetricsGet": _gpm_metrics,
    "nvmlEventSetCreate": _made,
    "nvmlDeviceRegisterEvents": _done,
    "nvmlEventSetWait_v2": _event,
    "nvmlEventSetFree": _done,
}
