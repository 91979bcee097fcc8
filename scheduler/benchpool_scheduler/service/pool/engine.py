"""Puts the parts of the service together, and starts and ends them in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Coroutine
from pathlib import Path

import msgspec

from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.runtime import Runtime
from benchpool_scheduler.service.administration.reconfiguration import Keep, Reconfiguration
from benchpool_scheduler.service.administration.whatifs import WhatIfs
from benchpool_scheduler.service.benches.gates import BenchGates
from benchpool_scheduler.service.benches.reservations import Leases
from benchpool_scheduler.service.cluster_state.state_cache import StateCache
from benchpool_scheduler.service.execution import recovery
from benchpool_scheduler.service.execution.actions import Actions
from benchpool_scheduler.service.execution.passes import Passes
from benchpool_scheduler.service.execution.watching import Watcher
from benchpool_scheduler.service.housekeeping.auditor import Auditor
from benchpool_scheduler.service.housekeeping.slow_timer import Housekeeping
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.jobs.inbound_jobs import InboundJobs
from benchpool_scheduler.service.jobs.previews import Previews
from benchpool_scheduler.service.jobs.uploads import ContentStore, UploadedContents
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.usage_decay import HOUR_S
from benchpool_scheduler.service.observed.latest_pass import LatestPass
from benchpool_scheduler.service.observed.site import Site
from benchpool_scheduler.service.process import interpreter
from benchpool_scheduler.service.views.announcing import Announce, Announcer
from benchpool_scheduler.service.views.estimates import Estimates
from benchpool_scheduler.service.views.events import Feed
from benchpool_scheduler.service.views.figures import Metrics
from benchpool_scheduler.service.views.job_views import JobViews
from benchpool_scheduler.service.views.pool_views import PoolViews, sentence
from benchpool_scheduler.service.views.prometheus_counters import PrometheusCounters
from benchpool_scheduler.store import Store
from benchpool_scheduler.store.records import JobRecord

log = logging.getLogger(__name__)

CLOSE_S = 5.0
MANY = 2_000
"""When a pass changes the reasons of more jobs, readers of events are told to ask again."""
SHIFTS_S = 2.0
"""Reasons whose numbers alone change are told again at most so often."""
POOL_S = 0.1
"""A burst of changes is one event about the pool."""


class Engine:
    """The parts of one pool."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        site: Site,
        configuration_file: Path | None,
        announce: Announce | None = None,
        place: ContentStore | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.site = site
        self.runtime = runtime
        self.ledger = Ledger(store)
        self.latest_pass = LatestPass()
        self.feed = Feed(int(site.clock.now() * 1_000_000))
        self.objects = UploadedContents(self.ledger, site, place)
        self.state_cache = StateCache(self.ledger, site)
        self.estimates = Estimates(self.ledger, site, self.state_cache, self._tell)
        self.jobs = JobViews(self.ledger, site, self.latest_pass, self.estimates)
        self.announcer = Announcer(self.ledger, self.jobs, announce)
        self.pool = PoolViews(self.ledger, site, self.latest_pass)
        self.auditor = Auditor(self.ledger, site)
        self.tally = PrometheusCounters(self.ledger)
        watcher = Watcher(self.ledger, site, runtime, self.want_pass)
        actions = Actions(self.ledger, site, runtime, watcher.tell)
        watcher.actions = actions
        self.watcher, self.actions = watcher, actions
        self.leases = Leases(
            self.ledger, site, self.latest_pass, runtime.nodes_for_claim, self.want_pass
        )
        self.passes = Passes(
            self.ledger,
            site,
            actions,
            self.latest_pass,
            self.state_cache,
            self._decided,
            self.leases.serve,
        )
        self.admission = Admission(self.ledger, site, self.objects, self.want_pass)
        self.previews = Previews(
            self.ledger, site, self.state_cache, self.admission, self.estimates
        )
        self.commands = Commands(self.ledger, site, actions, self.admission, self.want_pass)
        self.gates = BenchGates(self.ledger, runtime)
        self.ledger.lease_changed = self.gates.see
        self.inbound = InboundJobs(
            self.ledger, site, runtime, self.admission, self.commands, self.leases
        )
        self.reconfiguration = Reconfiguration(
            self.ledger, site, configuration_file, self._reconfigured, keep
        )
        self.whatifs = WhatIfs(self.ledger, site, self.state_cache, self.reconfiguration)
        self.housekeeping = Housekeeping(
            self.ledger, site, runtime, self.leases, self.objects, self.want_pass
        )
        self.ledger.changed = self._jobs_changed
        self.ledger.dropped = self._job_dropped
        self._tasks: list[asyncio.Task[None]] = []
        self._told = b""
        self._pool_soon: asyncio.TimerHandle | None = None
        self._shifted: set[str] = set()
        self._shifts_soon: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------------ life

    async def open(self) -> None:
        """Read, recover, begin. Errors: Unavailable, InvalidInput for benches that do not fit."""
        interpreter.prepare()
        await self.ledger.open()
        half_life_s = self.site.configuration.policy.usage_half_life_h * HOUR_S
        self.site.usage.restore(self.ledger.saved_use, self.site.clock.now(), half_life_s)
        try:
            self.objects.prepare()
            self.site.devices = await self.runtime.devices()
            self.site.nodes = await self.runtime.nodes()
            await self.housekeeping.ask_hub()
            self._refuse_benches_that_do_not_fit()
            await recovery.recover(self.ledger, self.site, self.runtime)
            await self.gates.hold_all()
            self.housekeeping.count_use()
        except BaseException:
            await self.runtime.close()
            await self.ledger.store.close()
            raise
        self.tally.start()
        self._tasks = [
            self._begin(self.watcher.listen()),
            self._begin(self.watcher.run()),
            self._begin(self.passes.run()),
            self._begin(self.housekeeping.run()),
            self._begin(self.estimates.run()),
            self._begin(self.inbound.run()),
            self._begin(self.announcer.run()),
        ]
        self.want_pass()

    async def close(self) -> None:
        """End what runs here; workers run on."""
        self.feed.close()
        for timer in (self._pool_soon, self._shifts_soon):
            if timer is not None:
                timer.cancel()
        # What is not carried out in time is carried out by the next start.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.actions.finish()
        async with self.ledger.lock:
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.passes.close()
        with contextlib.suppress(BenchpoolError):
            self.housekeeping.count_use()
            await self.housekeeping.save_use()
        await self.runtime.close()
        await self.ledger.store.close()

    def want_pass(self) -> None:
        """Ask for a pass."""
        self.passes.want()

    def _reconfigured(self) -> None:
        self.state_cache.renew()
        self.want_pass()

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        task.add_done_callback(_report_end)
        return task

    def _refuse_benches_that_do_not_fit(self) -> None:
        """Refuse to start with what R3 forbids, unless there is work that must be watched over."""
        fault = self.housekeeping.check_reserve()
        if self.site.containers is not None:
            # Nodes of a cluster come and go; it is said, and looked at again with each change.
            return
        busy = bool(self.ledger.job_index.live) or bool(self.ledger.leased)
        if fault is not None and not busy:
            raise fault

    # ------------------------------------------------------------------ news

    def _jobs_changed(self, jobs: Collection[str]) -> None:
        self.state_cache.touch(jobs)
        self.inbound.see(jobs)
        for job in jobs:
            record = self.ledger.job(job)
            if record is not None:
                self.tally.see(record)
        self._tell(jobs)
        self._tell_pool_soon()

    def _tell_pool_soon(self) -> None:
        if self._pool_soon is None:
            self._pool_soon = asyncio.get_running_loop().call_later(POOL_S, self._tell_pool)

    def _tell_pool(self) -> None:
        self._pool_soon = None
        if not self.feed.followed:
            # Who comes later may be told once too often; counting for nobody costs more.
            self._told = b""
            self.feed.add("pool")
            return
        told = self.pool_event()
        if told != self._told:
            self._told = told
            self.feed.add("pool")

    def _tell(self, jobs: Collection[str]) -> None:
        if len(jobs) > MANY:
            self.feed.forget()
            return
        for job in jobs:
            record = self.ledger.job(job)
            if record is not None:
                self.feed.add("job", record.id, record.user, record.project)

    def _job_dropped(self, job: JobRecord) -> None:
        self.feed.add("deleted", job.id, job.user, job.project)

    def _decided(self, jobs: Collection[str], shifts: Collection[str]) -> None:
        self._tell(jobs)
        self.announcer.see(jobs)
        self.auditor.audit()
        self._tell_pool_soon()
        self._shifted.update(shifts)
        if self._shifted and self._shifts_soon is None:
            loop = asyncio.get_running_loop()
            self._shifts_soon = loop.call_later(SHIFTS_S, self._tell_shifts)
        self.estimates.want()

    def _tell_shifts(self) -> None:
        self._shifts_soon = None
        shifted, self._shifted = self._shifted, set()
        self._tell(shifted)

    def pool_event(self) -> bytes:
        """Return what everybody may know of the pool, as JSON."""
        status = self.pool
        counts = status.counts()
        body = {
            "text": sentence(counts, status.waiting()),
            "counts": {state.value: count for state, count in counts.items()},
            "queue_length": status.waiting(),
            "running": status.running(),
            "bench_line": self.site.bench_line,
        }
        return msgspec.json.encode(body)

    # ------------------------------------------------------------------ figures

    def metrics(self) -> Metrics:
        """Return figures for Prometheus."""
        live = self.ledger.counters.by_state
        return Metrics(
            jobs={(project, state.value): count for (project, state), count in live.items()},
            jobs_ended=self.tally.ended,
            gpus={state.value: count for state, count in self.pool.counts().items()},
            queue_length=self.pool.waiting(),
            submissions=self.admission.accepted,
            refusals=self.admission.refused,
            preemptions=self.tally.preemptions,
            lost_gpu_s=self.tally.lost_gpu_s,
            passes=self.latest_pass.passes,
            pass_s=self.latest_pass.pass_s,
            last_pass_s=self.latest_pass.last_pass_s,
            store_bytes=self.ledger.store.size(),
            breaches=self.auditor.breaches,
            problems=tuple(self.site.problems.values()),
            past_use_gpu_s=self.site.usage.by_project(),
        )


def _report_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("a part of the service ended", exc_info=task.exception())
