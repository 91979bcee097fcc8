"""Periodic checks of GPUs, disk, Hub, retention and backups."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from benchpool_scheduler.errors import BenchpoolError, InvalidInput
from benchpool_scheduler.runtime import DeviceState, Hearing, Runtime
from benchpool_scheduler.service.administration import backups, unfit_guarantees
from benchpool_scheduler.service.administration.adoption import OrphanRecovery
from benchpool_scheduler.service.administration.backups import Backups
from benchpool_scheduler.service.benches import bench_reserve, unfit_quotas
from benchpool_scheduler.service.benches.reservations import Leases
from benchpool_scheduler.service.execution.stops import Stops
from benchpool_scheduler.service.housekeeping import disk
from benchpool_scheduler.service.housekeeping.month import see_hours
from benchpool_scheduler.service.housekeeping.retention import RetentionCleaner
from benchpool_scheduler.service.ledger.hours_used import HoursUsed
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.usage_decay import HOUR_S, UsageDecay, rates
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import SaveUse

log = logging.getLogger(__name__)

LOOK_S, AT_LEAST_S = 3.0, 0.25
"""Maximum interval between checks of the machines, and minimum after a reported change, in
seconds.
"""
HUB_S = 15.0
HUB_UNKNOWN_S = 1.0
SAVE_USE_S = 60.0
CLEAN_S = 3600.0


class Housekeeping:
    """Background task for periodic checks.

    Args:
        want_pass: Called when an input of the passes has changed.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        usage: UsageDecay,
        hours: HoursUsed,
        leases: Leases,
        removal: RetentionCleaner,
        adoption: OrphanRecovery,
        backups_: Backups,
        stops: Stops,
        want_pass: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._usage = usage
        self._hours = hours
        self._leases = leases
        self.removal = removal
        self._adoption = adoption
        self._backups = backups_
        self._stops = stops
        self._want_pass = want_pass

    async def run(self) -> None:
        """Check periodically until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_on())
            tasks.create_task(self._follow_hub())
            tasks.create_task(_every(SAVE_USE_S, self.save_use))
            tasks.create_task(_every(CLEAN_S, self.removal.clean))
            tasks.create_task(_every(backups.LOOK_S, self._backups.make_daily))

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(AT_LEAST_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S - AT_LEAST_S):
                    await self._news()
            await _guarded(self.look)

    async def _news(self) -> None:
        if isinstance(self._runtime, Hearing):
            await self._runtime.machines_changed()
        else:
            await asyncio.Event().wait()

    async def look(self) -> None:
        """Check GPUs, disk, stops and use; request a pass if its inputs have changed."""
        changed = self._adoption.refresh()
        changed |= await self.see_machines()
        unusable = self._observed.now.inventory.unusable
        broken = [d for d in unusable if d.state is DeviceState.BROKEN]
        notes = "; ".join(f"GPU {d.index} of {d.node}: {d.note or 'broken'}" for d in broken)
        self._observed.report("devices", f"{notes}." if notes else None)
        state = self._observed.settings.state
        self._observed.report("disk", disk.problem_of(disk.room_of(state), state))
        await self._stops.repeat()
        self.count_use()
        changed |= self._update_use()
        changed |= await see_hours(self._hours, self._observed)
        changed |= self._leases.renew_calls()
        if changed:
            self._want_pass()

    async def see_machines(self) -> bool:
        """Read GPUs and machines from the runtime; return whether they have changed."""
        devices, nodes = await self._runtime.devices(), await self._runtime.nodes()
        seen = self._observed.now
        devices = seen.safe_mode.without_blocked(devices)
        if devices == seen.inventory.devices and nodes == seen.inventory.reported:
            return False
        self._observed.put(seen.with_machines(devices, nodes))
        return True

    def _update_use(self) -> bool:
        """Update the past use in the inputs of the core; return whether it has changed (R7)."""
        seen = self._observed.now
        usage = self._usage.snapshot(seen.usage, seen.configuration)
        if usage == seen.usage:
            return False
        self._observed.put(replace(seen, usage=usage))
        return True

    def count_use(self) -> None:
        """Sample the present use above quota (R7)."""
        configuration = self._observed.now.configuration
        half_life_s = configuration.policy.usage_half_life_h * HOUR_S
        now = self._observed.settings.clock.now()
        self._usage.sample(now, rates(self._ledger.counters, configuration), half_life_s)

    async def save_use(self) -> None:
        """Save the past use for the next start (R7)."""
        use = self._usage.records()
        if use or self._ledger.saved_use:
            await self._ledger.commit(SaveUse(use))

    async def _follow_hub(self) -> None:
        """Poll the Hub; at once if a bench found no free GPU, since its user may be new."""
        while True:
            unknown = self._observed.settings.directory.servers() is None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HUB_UNKNOWN_S if unknown else HUB_S):
                    await self._leases.shortage.wait()
            self._leases.shortage.clear()
            await _guarded(self.ask_hub)

    async def ask_hub(self) -> None:
        """Read users and servers from the Hub, and release leases of missing servers."""
        before = self._observed.now.users
        try:
            await self._observed.ask_hub()
        except BenchpoolError as error:
            self._observed.report("hub", str(error))
            return
        self._observed.report("hub", None)
        left = self._observed.left_users.describe(list(self._ledger.live()))
        self._observed.report("left-users", left)
        self.check_reserve()
        self.check_guarantees()
        await self._leases.reconcile()
        if self._observed.now.users is not before:
            self._want_pass()

    def check_reserve(self) -> InvalidInput | None:
        """Return and report the error if the benches no longer fit the pool (R3), or None."""
        try:
            if self._observed.now.inventory.devices:
                unfit_quotas.refuse_sum(self._observed.now)
        except InvalidInput as error:
            self._observed.report("reserve", error.message)
            return error
        self._observed.report("reserve", None)
        return None

    def check_guarantees(self) -> None:
        """Report it if the pool can no longer hold the guaranteed quotas (R4)."""
        now = self._observed.now
        try:
            if now.inventory.devices:
                unfit_guarantees.refuse(now.configuration, bench_reserve.guaranteed_gpus(now))
        except InvalidInput as error:
            self._observed.report("guarantees", error.message)
            return
        self._observed.report("guarantees", None)

    def refuse_benches_that_do_not_fit(self) -> None:
        """Refuse to start if the benches do not fit (R3), unless jobs or benches exist already.

        Errors: InvalidInput.
        """
        fault = self.check_reserve()
        if self._observed.settings.containers is not None:
            # Nodes of a cluster come and go: the problem is reported and checked after each change.
            return
        busy = bool(self._ledger.job_index.live) or bool(self._ledger.leased)
        if fault is not None and not busy:
            raise fault


async def _every(seconds: float, look: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await _guarded(look)


async def _guarded(look: Callable[[], Awaitable[None]]) -> None:
    try:
        await look()
    except Exception:
        # The next run may succeed, and other parts do not depend on this one.
        log.exception("housekeeping failed; retrying")
