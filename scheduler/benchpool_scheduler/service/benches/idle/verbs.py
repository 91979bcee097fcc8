"""Actions on idle benches with the caller's permissions checked, and the background task."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

from benchpool_scheduler import phrases
from benchpool_scheduler.contract.idle_benches import BenchAct, BenchActivity, BenchIdleness
from benchpool_scheduler.core.benches.giving_back import Giving
from benchpool_scheduler.core.benches.idle import IdleStep
from benchpool_scheduler.errors import NotFound, Refused
from benchpool_scheduler.runtime import Runtime
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.benches.idle import views
from benchpool_scheduler.service.benches.idle.acting import BenchGiver
from benchpool_scheduler.service.benches.idle.watcher import IdleWatcher, WatchedBench
from benchpool_scheduler.service.benches.reservations import Leases
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.process.shielded import shielded

log = logging.getLogger(__name__)

FILE = "idle-benches.json"
LOOK_S, AT_LEAST_S = 10.0, 0.5
"""Longest and shortest time between two looks, in seconds.

The shortest one applies where a site's idle times are very short.
"""


class IdleBenchVerbs:
    """Actions of notebook servers and users on idle benches.

    Attributes:
        watcher: The state of each bench. ``giver``: releases benches that are due.
    """

    def __init__(
        self, ledger: Ledger, observed: SchedulerState, runtime: Runtime, reservations: Leases
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        file: Path = observed.settings.state / "scheduler" / FILE
        self.watcher = IdleWatcher(ledger, observed, file)
        self.giver = BenchGiver(self.watcher, observed, runtime, reservations)

    # ------------------------------------------------------------------ life

    async def run(self) -> None:
        """Look at all benches and act, until cancelled."""
        while True:
            await asyncio.sleep(max(AT_LEAST_S, min(LOOK_S, self.watcher.rule.tell_s / 4)))
            try:
                await self.look()
            except Exception:
                # Nothing was released. The next look tries again.
                log.exception("the check of idle benches failed; it is retried")

    async def look(self) -> None:
        """Look at all benches once and take the actions that follow."""
        self.watcher.look()
        await self.giver.advance()
        self.notify_owners()
        await self.watcher.save()

    async def close(self) -> None:
        """Save the state that the next start needs."""
        await self.watcher.save(at_once=True)

    def notify_owners(self) -> None:
        """Publish the notifications for owners of idle benches, if they have changed."""
        notifications = {
            (self.watcher.benches[id_].lease.user, f"bench-{id_}-{step}"): self._words(id_, step)
            for id_, step in self.watcher.to_notify().items()
        }
        seen = self._observed.now
        if notifications.keys() != seen.idle_benches.keys():
            self._observed.put(replace(seen, idle_benches=notifications))

    def _words(self, lease: str, step: IdleStep) -> str:
        bench = self.watcher.benches[lease]
        stops = self.giver.act_of(bench) is BenchAct.STOP
        server, idle_s = bench.lease.server, bench.watch.idle_s
        if step is IdleStep.DUE and self.giver.is_parking(bench):
            return phrases.bench_parks(server, idle_s)
        if step is IdleStep.DUE:
            return phrases.bench_due(server, idle_s, stops=stops)
        acts_at = moment(bench.watch.since + self.watcher.rule.act_s)
        parks = self.giver.parks(bench)
        return phrases.bench_notification(server, idle_s, acts_at, stops=stops, parks=parks)

    # ------------------------------------------------------------------ actions

    def list(self, caller: Caller) -> list[BenchIdleness]:
        """Return the benches that the caller may see, the longest idle first."""
        self.watcher.meet()
        seen = [
            it for it in self.watcher.benches.values() if rights.may_use_lease(caller, it.lease)
        ]
        return [self._view(it) for it in sorted(seen, key=lambda it: -it.watch.idle_s)]

    def report(self, caller: Caller, lease: str, activity: BenchActivity) -> BenchIdleness:
        """Record a notebook server's report of its activity. Errors: NotFound, Forbidden."""
        bench = self._own(caller, lease, "report its activity")
        bench.sights.reported(activity, self.watcher.now())
        if activity.noted:
            self.giver.noted(bench)
        return self._view(bench)

    async def keep(self, caller: Caller, lease: str) -> BenchIdleness:
        """Keep a bench for the rule's keep time.

        Errors: NotFound, Forbidden. Also Refused ``bench-stops`` or ``kept-too-often``.
        """
        bench = self._own(caller, lease, "keep it")
        rule = self.watcher.rule
        if bench.giving is Giving.STOPPING:
            raise Refused(
                "The Hub is stopping this bench. Start it again from the Hub's page.",
                code="bench-stops",
            )
        if self.watcher.keep(bench) is None:
            raise Refused(
                phrases.keeps_used_up(rule.keeps_a_day, rule.keep_s),
                code="kept-too-often",
                numbers={"keeps": len(bench.keeps), "limit": rule.keeps_a_day},
            )
        self.giver.drop(bench)
        await self.watcher.save(at_once=True)
        self.notify_owners()
        return self._view(bench)

    def release(self, caller: Caller, lease: str) -> BenchIdleness:
        """Release a bench because its owner requests it. Errors: NotFound, Forbidden."""
        bench = self._own(caller, lease, "release it")
        self.giver.begin(bench, asked=True)
        return self._view(bench)

    async def released(self, caller: Caller, lease: str) -> None:
        """End a lease whose server keeps running. A lease that has already ended is no error.

        Errors: NotFound for a lease that the caller may not see; Refused ``gpu-held``; Unavailable.
        """
        if self._ledger.lease(lease) is None:
            return
        bench = self._own(caller, lease, "report its release")
        await shielded(self.giver.released(bench))

    def _own(self, caller: Caller, lease: str, action: str) -> WatchedBench:
        held = self._ledger.lease(lease)
        if held is None or not rights.may_use_lease(caller, held):
            raise NotFound("There is no such bench: its GPUs were released.", field="lease")
        rights.require_owner_of_lease(caller, held, action)
        return self.watcher.bench(held)

    def _view(self, bench: WatchedBench) -> BenchIdleness:
        act, parks = self.giver.act_of(bench), self.giver.parks(bench)
        return views.idleness(self.watcher, bench, act, parks=parks)
