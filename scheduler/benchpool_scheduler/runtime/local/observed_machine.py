"""Last state of this machine; the driver is queried in a thread, since it may hang."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from benchpool_scheduler.runtime import Device, NodeFacts
from benchpool_scheduler.worker.gpu_files import GpuFiles, Numbers

from .gpus import DeviceSource
from .machine import GpuLinks, facts


class ObservedMachine:
    """The GPUs of this machine, and the machine as a node.

    Args:
        source: Source of the GPUs.
        devices_s: Cache lifetime of the list of devices, in seconds.
        driver_s: Timeout for the driver, after which the last list is used, in seconds.
    """

    def __init__(self, source: DeviceSource, devices_s: float, driver_s: float) -> None:
        self._source = source
        self._devices_s = devices_s
        self._driver_s = driver_s
        self._devices: tuple[float, tuple[Device, ...] | None] = (0.0, None)
        self._asking: asyncio.Task[None] | None = None
        self._links: tuple[frozenset[str], GpuLinks] = (frozenset(), GpuLinks())
        self._files = GpuFiles()
        self._nodes: tuple[NodeFacts, ...] = ()

    async def devices(self) -> tuple[Device, ...]:
        """Return the GPUs as they are now, or as last seen while the driver hangs."""
        at, known = self._devices
        if known is not None and time.monotonic() - at <= self._devices_s:
            return known
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask_for_devices())
        await asyncio.wait({self._asking}, timeout=self._driver_s if known is not None else None)
        return self._devices[1] or ()

    async def _ask_for_devices(self) -> None:
        found = await asyncio.to_thread(self._source.devices)
        there = frozenset(device.uuid for device in found)
        if there != self._links[0]:
            # The links do not change while the machine runs.
            self._links = there, await asyncio.to_thread(self._source.links)
            self._files = await asyncio.to_thread(self._source.device_files)
        self._devices = (time.monotonic(), found)

    async def holders(self, gpus: Sequence[str]) -> tuple[int, ...] | None:
        """Return the processes on these GPUs, or None if the driver hangs or lacks them."""
        asked = asyncio.to_thread(lambda: [self._source.processes(gpu) for gpu in gpus])
        try:
            found = await asyncio.wait_for(asked, self._driver_s)
        except TimeoutError:
            return None
        reported = [pids for pids in found if pids is not None]
        return (
            None
            if len(reported) < len(gpus)
            else tuple(sorted({pid for it in reported for pid in it}))
        )

    def denied(self, gpus: Sequence[str]) -> list[Numbers]:
        """Return the devices of all other GPUs, which a process with these GPUs must not open."""
        return self._files.denied(gpus)

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return this machine."""
        devices = await self.devices()
        names = dict.fromkeys(device.node for device in devices)
        there = [device.uuid for device in devices]
        found = tuple(facts(name, self._links[1], there) for name in names)
        if found != self._nodes:
            self._nodes = found
        return self._nodes
