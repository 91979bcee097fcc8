"""GPUs of this machine: the only module that calls NVML, and simulated GPUs.

NVML may be missing, older than its binding, or updated while this process runs, and it may lose a
GPU during a call. None of these conditions is an error here: each becomes a state of a device, or
an empty list with a note for ``benchpool doctor``.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import psutil
import pynvml

from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.worker import gpu_files
from benchpool_scheduler.worker.gpu_files import GpuFiles, Part

from .machine import WORD_BITS, GpuLinks, closeness, first_core, nvlinks_between, socket_of

NODE = "localhost"
_NAMESPACE = uuid.UUID("b0a3c1a6-6b52-5c0f-9d6e-2f4f8f6d3b11")
_ANCESTORS = 64
_UNKNOWN_MEMORY: Mapping[str, int] = {"A100": 81920, "H100": 81559, "H200": 143771, "V100": 32768}

Ours = Callable[[int, str], bool]
"""Function that returns whether a process (pid) uses a GPU (UUID) that benchpool gave to it."""


class DeviceSource(Protocol):
    """Source of GPUs; never raises."""

    def devices(self) -> tuple[Device, ...]:
        """Return the GPUs as they are now."""

    def processes(self, uuid: str) -> tuple[int, ...] | None:
        """Return the pids that compute on a GPU, or None if unknown."""

    def links(self) -> GpuLinks:
        """Return the links between the GPUs; empty if unknown."""

    def device_files(self) -> GpuFiles:
        """Return the known device files of the GPUs."""

    @property
    def note(self) -> str:
        """Sentence for ``benchpool doctor``: the GPUs found, or why there are none."""


# ------------------------------------------------------------------------------- simulated


@dataclass(frozen=True, slots=True)
class SimulatedSource:
    """GPUs without hardware; their UUIDs are the same at every start."""

    count: int
    model: str = "A100"
    node: str = NODE

    def devices(self) -> tuple[Device, ...]:
        """Return ``count`` usable devices."""
        memory = next((mib for key, mib in _UNKNOWN_MEMORY.items() if key in self.model), None)
        return tuple(
            Device(simulated_uuid(index), index, self.model, self.node, memory, simulated=True)
            for index in range(self.count)
        )

    def processes(self, uuid: str) -> tuple[int, ...]:
        """Return nothing: no process can use them."""
        return ()

    def links(self) -> GpuLinks:
        """Return nothing: they have no links."""
        return GpuLinks()

    def device_files(self) -> GpuFiles:
        """Return nothing: they have no device files."""
        return GpuFiles()

    @property
    def note(self) -> str:
        """Sentence that they are simulated."""
        return f"{self.count} simulated GPUs of model {self.model}; jobs do not compute on them"


def simulated_uuid(index: int) -> str:
    """Return the stable UUID of a simulated GPU.

    >>> simulated_uuid(0) == simulated_uuid(0) != simulated_uuid(1)
    True
    """
    return f"GPU-{uuid.uuid5(_NAMESPACE, str(index))}"


def simulated(count: int, model: str = "A100", node: str = NODE) -> SimulatedSource:
    """Return a source of ``count`` simulated GPUs."""
    return SimulatedSource(count, model, node)


# ------------------------------------------------------------------------------- NVML


class NvmlSource:
    """The NVIDIA GPUs and MIG slices of this machine."""

    def __init__(self, node: str = NODE, ours: Ours | None = None) -> None:
        self._node = node
        self._ours = ours or started_by_us
        self._known: dict[str, Device] = {}
        self._note = "NVML was not queried yet"
        self._connected = False

    @property
    def note(self) -> str:
        """Sentence with the GPUs found, or why there are none."""
        return self._note

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that NVML lists; GPUs that disappeared are broken."""
        try:
            self._connect()
            found = self._list()
        except pynvml.NVMLError as error:
            self._disconnect()
            self._note = f"NVML does not answer: {error}"
            return self._lost(frozenset(), str(error))
        if any(device.state is DeviceState.BROKEN for device in found):
            self._disconnect()  # handles become stale when a GPU is reset
        self._known |= {device.uuid: device for device in found}
        self._note = f"{len(found)} GPUs found through NVML"
        lost = self._lost(frozenset(device.uuid for device in found), "NVML no longer lists it")
        return (*found, *lost)

    def processes(self, uuid: str) -> tuple[int, ...] | None:
        """Return the pids that compute on a GPU, or None if NVML does not report them."""
        try:
            self._connect()
            return _reported_pids(pynvml.nvmlDeviceGetHandleByUUID(uuid))
        except pynvml.NVMLError:
            return None

    def links(self) -> GpuLinks:
        """Return the links between the GPUs; a MIG slice has those of its GPU."""
        try:
            self._connect()
            count = pynvml.nvmlDeviceGetCount()
            handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
            return _hanging(handles)
        except pynvml.NVMLError:
            return GpuLinks()

    def device_files(self) -> GpuFiles:
        """Return the device files of GPUs and MIG slices."""
        try:
            self._connect()
            count = pynvml.nvmlDeviceGetCount()
            handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
            parts = dict(part for handle in handles for part in self._parts(handle))
        except pynvml.NVMLError:
            return GpuFiles()
        return GpuFiles(gpu_files.look(), parts)

    def _parts(self, handle: Any) -> Iterator[tuple[str, Part]]:
        gpu = _quiet(pynvml.nvmlDeviceGetMinorNumber, handle)
        if gpu is None:
            return
        yield str(pynvml.nvmlDeviceGetUUID(handle)), Part(gpu)
        for one in self._slice_handles(handle) or ():
            instance = _quiet(pynvml.nvmlDeviceGetGpuInstanceId, one)
            compute = _quiet(pynvml.nvmlDeviceGetComputeInstanceId, one)
            known = None if instance is None or compute is None else (instance, compute)
            yield str(pynvml.nvmlDeviceGetUUID(one)), Part(gpu, slice=True, instances=known)

    def _connect(self) -> None:
        """Start NVML once and keep it open: a start may take seconds on an idle machine."""
        if not self._connected:
            pynvml.nvmlInit()
            self._connected = True

    def _disconnect(self) -> None:
        if self._connected:
            self._connected = False
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()

    def _list(self) -> list[Device]:
        found: list[Device] = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                slices = self._slices(handle, index)
                found += [self._device(handle, index)] if slices is None else slices
            except pynvml.NVMLError as error:
                found += self._broken(index, str(error))
        return found

    def _slices(self, parent: Any, index: int) -> list[Device] | None:
        """Return the MIG slices of a GPU, each a GPU of its own (R1); None without MIG."""
        handles = self._slice_handles(parent)
        return None if handles is None else [self._device(handle, index) for handle in handles]

    def _slice_handles(self, parent: Any) -> list[Any] | None:
        mode = _quiet(pynvml.nvmlDeviceGetMigMode, parent)
        if mode is None or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            return None
        most = _quiet(pynvml.nvmlDeviceGetMaxMigDeviceCount, parent) or 0
        # Slice numbers have gaps.
        handles = [
            _quiet(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, parent, i) for i in range(most)
        ]
        return [handle for handle in handles if handle is not None]

    def _device(self, handle: Any, index: int) -> Device:
        uuid = str(pynvml.nvmlDeviceGetUUID(handle))
        model = _quiet(pynvml.nvmlDeviceGetName, handle)
        memory = _quiet(pynvml.nvmlDeviceGetMemoryInfo, handle)
        device = Device(
            uuid=uuid,
            index=index,
            model=str(model) if model else "unknown model",
            node=self._node,
            memory_mib=None if memory is None else int(memory.total) // 1024**2,
            simulated=False,
        )
        return self._with_foreign(device, _pids(handle))

    def _with_foreign(self, device: Device, pids: Sequence[int]) -> Device:
        foreign = [pid for pid in pids if not self._ours(pid, device.uuid)]
        if not foreign:
            return device
        shown = ", ".join(str(pid) for pid in foreign[:5])
        note = f"in use by {len(foreign)} process(es) that benchpool did not start: {shown}"
        return replace(device, state=DeviceState.FOREIGN, note=note)

    def _broken(self, index: int, why: str) -> list[Device]:
        known = [device for device in self._known.values() if device.index == index]
        if known:
            return [replace(device, state=DeviceState.BROKEN, note=why) for device in known]
        name = f"GPU-unreadable-{index}"
        return [
            Device(name, index, "unknown model", self._node, None, False, DeviceState.BROKEN, why)
        ]

    def _lost(self, present: frozenset[str], why: str) -> tuple[Device, ...]:
        return tuple(
            replace(device, state=DeviceState.BROKEN, note=why)
            for uuid, device in self._known.items()
            if uuid not in present
        )


def _quiet(ask: Callable[..., Any], *arguments: Any) -> Any:
    """Return NVML's answer, or None if this GPU or driver does not support the call."""
    try:
        return ask(*arguments)
    except pynvml.NVMLError_GpuIsLost:
        raise
    except pynvml.NVMLError:
        return None


def _pids(handle: Any) -> tuple[int, ...]:
    return _reported_pids(handle) or ()


def _reported_pids(handle: Any) -> tuple[int, ...] | None:
    for ask in (
        pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
        pynvml.nvmlDeviceGetComputeRunningProcesses_v2,
    ):
        found = _quiet(ask, handle)
        if found is not None:
            return tuple(sorted({int(process.pid) for process in found}))
    return None


# ------------------------------------------------------------------------------- links


def _hanging(handles: Sequence[Any]) -> GpuLinks:
    buses = [_bus(pynvml.nvmlDeviceGetPciInfo(handle)) for handle in handles]
    peers = {bus: _nvlinks(handle) for bus, handle in zip(buses, handles, strict=True)}
    words = 1 + ((os.cpu_count() or 1) - 1) // WORD_BITS
    masks = [_quiet(pynvml.nvmlDeviceGetCpuAffinity, handle, words) or () for handle in handles]
    sockets = [socket_of(first_core(mask)) for mask in masks]

    def close(a: int, b: int) -> int:
        if a == b:
            return 0
        ancestor = _quiet(pynvml.nvmlDeviceGetTopologyCommonAncestor, handles[a], handles[b])
        return closeness(ancestor, nvlinks_between(peers, buses[a], buses[b]))

    every = range(len(handles))
    return GpuLinks(
        gpus=tuple(str(pynvml.nvmlDeviceGetUUID(handle)) for handle in handles),
        links=tuple(tuple(close(a, b) for b in every) for a in every),
        sockets=() if None in sockets else tuple(s for s in sockets if s is not None),
    )


def _nvlinks(handle: Any) -> Mapping[str, int]:
    """Return the number of a GPU's active NVLinks by the bus address of their other end."""
    found: dict[str, int] = {}
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        if _quiet(pynvml.nvmlDeviceGetNvLinkState, handle, link) != pynvml.NVML_FEATURE_ENABLED:
            continue
        remote = _quiet(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
        if remote is not None:
            found[_bus(remote)] = found.get(_bus(remote), 0) + 1
    return found


def _bus(pci: Any) -> str:
    """Return a bus address in lower case; the driver uses several spellings."""
    return os.fsdecode(pci.busId).lower()


# ------------------------------------------------------------------------------- whose process


def started_by_us(pid: int, uuid: str) -> bool:
    """Return whether benchpool gave this GPU to a process or one of its ancestors."""
    return given_to(pid, uuid) is not None


def on_a_bench(pid: int, uuid: str) -> bool:
    """Return whether a process belongs to a notebook server that was given this GPU."""
    return given_to(pid, uuid) == "bench"


def given_to(pid: int, uuid: str) -> Literal["bench", "job"] | None:
    """Return the kind of work for which a process or an ancestor was given this GPU, or None.

    Workers and notebook servers start with the UUID in ``CUDA_VISIBLE_DEVICES`` and with a variable
    of benchpool. The check reads the initial environment, which a process cannot change later.
    """
    for _ in range(_ANCESTORS):
        if pid <= 1:
            return None
        variables = _initial_environment(pid)
        if uuid in variables.get("CUDA_VISIBLE_DEVICES", "").split(","):
            if "BENCHPOOL_JOB_ID" in variables:
                return "job"
            if "BENCHPOOL_URL" in variables:
                return "bench"
        pid = _parent(pid)
    return None


def _initial_environment(pid: int) -> Mapping[str, str]:
    try:
        return psutil.Process(pid).environ()
    except psutil.Error:
        return {}


def _parent(pid: int) -> int:
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return 0


def find_devices(node: str = NODE) -> NvmlSource | None:
    """Return the machine's own GPUs, or None if there are none."""
    source = NvmlSource(node)
    return source if source.devices() else None
