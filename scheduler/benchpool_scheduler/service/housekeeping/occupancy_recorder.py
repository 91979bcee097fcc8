"""Record of the holders of each GPU, as intervals.

Changes are noted as they happen, and written every few seconds together with the end of open
intervals. A crash loses at most these seconds. They are filled from the ledger at the next start,
since running jobs kept their GPUs. Only reports depend on this record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from benchpool_scheduler.accounting.gap_filling import bridged
from benchpool_scheduler.accounting.gpu_intervals import GpuInterval
from benchpool_scheduler.accounting.wanted import wanted
from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.service.housekeeping import occupants
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.inventory import Inventory
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.views.gpu_states import GpuStates
from benchpool_scheduler.telemetry import FAULTS

log = logging.getLogger(__name__)

WRITE_S = 10.0
MOST_UNWRITTEN = 100_000
"""Maximum number of intervals kept while the database cannot be written."""


class OccupancyStore(Protocol):
    """Store of intervals; its calls block."""

    def keep_occupancies(self, intervals: Sequence[GpuInterval]) -> None:
        """Write intervals; an existing one is extended."""

    def newest_occupancies(self) -> Sequence[GpuInterval]:
        """Return the last interval of every known GPU."""


class OccupancyRecorder:
    """Recorder of the holders of each GPU.

    Args:
        gpu_states: States of the GPUs; subscribed before this recorder to the same events.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        gpu_states: GpuStates,
        store: OccupancyStore,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._gpu_states = gpu_states
        self._store = store
        self._seen: Observations = observed.now
        self._wanted: frozenset[str] = frozenset()
        self._open: dict[str, GpuInterval] = {}
        self._closed: list[GpuInterval] = []
        self._recording = False
        self._writing = asyncio.Lock()

    # ------------------------------------------------------------------ life cycle

    async def run(self) -> None:
        """Continue the record, and write it every few seconds until cancelled."""
        while True:
            try:
                await self.write()
            except FAULTS as fault:
                # Faults of the machine: reports may lack this interval, and jobs are not affected.
                log.warning("GPU holders could not be recorded (%s); retrying", fault)
            except Exception:
                log.exception("GPU holders could not be recorded; retrying")
            await asyncio.sleep(WRITE_S)

    async def close(self) -> None:
        """Write open intervals until now, and stop recording."""
        try:
            if self._recording:
                await self.write()
        except FAULTS as fault:
            log.warning("GPU holders of the last seconds could not be recorded (%s)", fault)
        except Exception:
            log.exception("GPU holders of the last seconds could not be recorded")
        self._recording = False

    async def write(self) -> None:
        """Write everything until now, for readers. Errors: those of the store."""
        async with self._writing:
            if not self._recording:
                await self._begin()
            now = self._now()
            ended, self._closed = self._closed, []
            going_on = [replace(one, end=now) for one in self._open.values() if now > one.begin]
            try:
                await asyncio.to_thread(self._store.keep_occupancies, [*ended, *going_on])
            except BaseException:
                self._closed = [*ended, *self._closed][-MOST_UNWRITTEN:]
                raise

    async def _begin(self) -> None:
        """Continue at the end of the record, and fill the gap since then from the ledger."""
        newest = await asyncio.to_thread(self._store.newest_occupancies)
        now = self._now()
        since = min((one.end for one in newest), default=now)
        held = occupants.held_since(self._ledger, since, now)
        for last in newest:
            if last.gpu in self._states:
                self._closed += bridged(last, now, held.get(last.gpu, ()))
        self._recording, self._seen = True, self._observed.now
        self._look_at(self._states)

    # ------------------------------------------------------------------ events

    def moved(self, gpus: Collection[str]) -> None:
        """Check GPUs whose holder may have changed, and all others of their nodes."""
        inventory = self._observed.now.inventory
        nodes = {inventory.by_uuid[gpu].node for gpu in gpus if gpu in inventory.by_uuid}
        self._look_at(device.uuid for node in nodes for device in inventory.nodes[node])

    def jobs_changed(self, jobs: Collection[str]) -> None:
        """Check the GPUs of these jobs, whose workers may have started."""
        for job_id in jobs:
            entry = self._ledger.counters.entry(job_id)
            if entry is not None and entry.gpus:
                self._look_at(entry.gpus)

    def see(self, now: Observations) -> None:
        """Check all GPUs if GPUs, users, the bench queue or closed machines have changed."""
        before, self._seen = self._seen, now
        same = now.inventory is before.inventory and now.users is before.users
        if not (same and now.called == before.called and now.closed == before.closed):
            for gpu in [gpu for gpu in self._open if gpu not in self._states]:
                self._end(gpu)
            self._look_at(self._states)

    def pass_made(self, _: object) -> None:
        """Check the free GPUs that waiting jobs could have used, or could before."""
        seen, before = self._observed.now, self._wanted
        asks = list(occupants.held_back(self._ledger, seen))
        if not asks and not before:
            return
        free = occupants.free_gpus(seen.inventory.nodes, self._states) if asks else {}
        self._wanted = wanted(free, asks)
        self._look_at(before ^ self._wanted)

    @property
    def _states(self) -> Mapping[str, GpuState]:
        return self._gpu_states.states

    def _now(self) -> float:
        return self._observed.settings.clock.now()

    def _look_at(self, gpus: Iterable[str]) -> None:
        if not self._recording:
            return
        inventory, now = self._observed.now.inventory, self._now()
        for gpu in list(gpus):
            state = self._states.get(gpu)
            if state is not None and gpu in inventory.by_uuid:
                self._look_at_one(gpu, state, inventory, now)

    def _look_at_one(self, gpu: str, state: GpuState, inventory: Inventory, now: float) -> None:
        occupant = occupants.occupant(self._ledger, gpu, state, self._wanted)
        going_on = self._open.get(gpu)
        if going_on is not None and going_on.occupant == occupant:
            return
        self._end(gpu)
        device = inventory.by_uuid[gpu]
        self._open[gpu] = GpuInterval(gpu, device.node, device.model, now, now, occupant)

    def _end(self, gpu: str) -> None:
        going_on, now = self._open.pop(gpu, None), self._now()
        if going_on is not None and now > going_on.begin:
            self._closed.append(replace(going_on, end=now))
