"""Records who has which GPU: an interval for each hand that it is in.

Changes are noted as they happen and written every few seconds, with the end of what goes on. What a
crash cuts off is at most that, and is filled from the ledger when the service starts again: a job
that ran on held on. The record may be lost; nothing but reports is made from it.
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
"""More intervals than this are not kept for a database that cannot be written."""


class OccupancyStore(Protocol):
    """Where intervals are kept; its verbs block."""

    def keep_occupancies(self, intervals: Sequence[GpuInterval]) -> None:
        """Write intervals; one that is there already is extended."""

    def newest_occupancies(self) -> Sequence[GpuInterval]:
        """Return the last interval of every GPU that was ever seen."""


class OccupancyRecorder:
    """The record of who has which GPU.

    Args:
        gpu_states: What each GPU is doing; they hear the same news first.
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

    # ------------------------------------------------------------------ life

    async def run(self) -> None:
        """Begin the record where it ended, and write it every few seconds, for ever."""
        while True:
            try:
                await self.write()
            except FAULTS as fault:
                # Of the machine: a report may lack this; jobs need none of it.
                log.warning("who has which GPU could not be written (%s); it is tried again", fault)
            except Exception:
                log.exception("who has which GPU could not be written; it is tried again")
            await asyncio.sleep(WRITE_S)

    async def close(self) -> None:
        """Write what goes on until now; nothing is recorded after that."""
        try:
            if self._recording:
                await self.write()
        except FAULTS as fault:
            log.warning("who had which GPU in the last seconds could not be written (%s)", fault)
        except Exception:
            log.exception("who had which GPU in the last seconds could not be written")
        self._recording = False

    async def write(self) -> None:
        """Write all until now, so that a reader finds it. Errors: those of the store."""
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
        """Go on where the record ended: what was not written since is filled from the ledger."""
        newest = await asyncio.to_thread(self._store.newest_occupancies)
        now = self._now()
        since = min((one.end for one in newest), default=now)
        held = occupants.held_since(self._ledger, since, now)
        for last in newest:
            if last.gpu in self._states:
                self._closed += bridged(last, now, held.get(last.gpu, ()))
        self._recording, self._seen = True, self._observed.now
        self._look_at(self._states)

    # ------------------------------------------------------------------ news

    def moved(self, gpus: Collection[str]) -> None:
        """Look again at GPUs whose holder may be another, and at what their nodes keep."""
        inventory = self._observed.now.inventory
        nodes = {inventory.by_uuid[gpu].node for gpu in gpus if gpu in inventory.by_uuid}
        self._look_at(device.uuid for node in nodes for device in inventory.nodes[node])

    def jobs_changed(self, jobs: Collection[str]) -> None:
        """Look again at the GPUs of jobs: their workers may run now."""
        for job_id in jobs:
            entry = self._ledger.counters.entry(job_id)
            if entry is not None and entry.gpus:
                self._look_at(entry.gpus)

    def see(self, now: Observations) -> None:
        """Look again at all GPUs where other ones, other users or closed machines are seen."""
        before, self._seen = self._seen, now
        same = now.inventory is before.inventory and now.users is before.users
        if not (same and now.called == before.called and now.closed == before.closed):
            for gpu in [gpu for gpu in self._open if gpu not in self._states]:
                self._end(gpu)
            self._look_at(self._states)

    def pass_made(self, _: object) -> None:
        """Look again at the free GPUs: somebody may wait who could have used them."""
        seen, before = self._observed.now, self._wanted
        asks = list(occupants.held_back(self._ledger, seen))
        if not asks and not before:
            return
        free = occupants.free_gpus(seen.inventory.nodes, self._states) if asks else {}
        self._wanted = wanted(free, asks)
        self._look_at(before ^ self._wanted)

    # ------------------------------------------------------------------ inside

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
