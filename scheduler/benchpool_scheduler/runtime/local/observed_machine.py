"""This machine as last seen: the driver is asked beside the loop, and may hang."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from benchpool_scheduler.runtime import Device, NodeFacts
from benchpool_scheduler.worker.gpu_files import GpuFiles, Numbers

from .gpus import DeviceSource
from .machine import GpuLinks, facts


class ObservedMachine:
    """The GPUs of this machine, and it as a node.

    Args:
        source: Where the GPUs come from.
        devices_s: How long a list of devices is good. ``driver_s``: how long the driver may take
            before the last list is used instead.
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
        """Return the GPUs as they are now; what was last seen while the driver hangs."""
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
            # How they hang together does not change while the machine runs.
            self._links = there, await asyncio.to_thread(self._source.links)
            self._files = await asyncio.to_thread(self._source.device_files)
        self._devices = (time.monotonic(), found)

    async def holders(self, gpus: Sequence[str]) -> tuple[int, ...] | None:
        """Return the processes on these GPUs; None where the driver hangs or does not tell."""
        asked = asyncio.to_thread(lambda: [self._source.processes(gpu) for gpu in gpus])
        try:
            found = await asyncio.wait_for(asked, self._driver_s)
        except TimeoutError:
            return None
        told = [pids for pids in found if pids is not None]
        return None if len(told) < len(gpus) else tuple(sorted({pid for it in told for pid in it}))

    def denied(self, gpus: Sequence[str]) -> list[Numbers]:
        """Return the devices that a process with these GPUs must not open: those of all others."""
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
