"""The pool as the API and the web interface see it: all parts of the service, start and close.

One asyncio loop owns a ``Pool``. Reads answer from memory. Commands are written to the store before
they are answered and before the runtime acts; a crash in between is repaired when the pool is
opened again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.hub import Directory
from benchpool_scheduler.runtime import Runtime
from benchpool_scheduler.runtime.parker import Parker
from benchpool_scheduler.service.administration.adoption import OrphanRecovery
from benchpool_scheduler.service.administration.audit_trail import AuditTrail
from benchpool_scheduler.service.administration.backups import Backups
from benchpool_scheduler.service.administration.history import RecordedHistory
from benchpool_scheduler.service.administration.nodes import NodeAdmin
from benchpool_scheduler.service.administration.notification_delivery import NotificationDelivery
from benchpool_scheduler.service.administration.notifier import Notifier
from benchpool_scheduler.service.administration.project_access import ProjectAccess
from benchpool_scheduler.service.administration.reconfiguration import Keep, Reconfiguration
from benchpool_scheduler.service.administration.whatifs import WhatIfs
from benchpool_scheduler.service.benches.benches import Benches
from benchpool_scheduler.service.benches.gates import BenchGates
from benchpool_scheduler.service.benches.idle.verbs import IdleBenchVerbs
from benchpool_scheduler.service.benches.reservations import Leases
from benchpool_scheduler.service.cluster_state.state_cache import StateCache
from benchpool_scheduler.service.execution import recovery
from benchpool_scheduler.service.execution.actions import Actions
from benchpool_scheduler.service.execution.drain import Drain
from benchpool_scheduler.service.execution.passes import Passes
from benchpool_scheduler.service.execution.watching import Watcher
from benchpool_scheduler.service.housekeeping.auditor import Auditor
from benchpool_scheduler.service.housekeeping.metering import Metering
from benchpool_scheduler.service.housekeeping.month import see_hours, update_hours
from benchpool_scheduler.service.housekeeping.retention import RetentionCleaner
from benchpool_scheduler.service.housekeeping.slow_timer import Housekeeping
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.jobs.contents import JobContents
from benchpool_scheduler.service.jobs.home_quota import HomeQuota
from benchpool_scheduler.service.jobs.inbound_jobs import InboundJobs
from benchpool_scheduler.service.jobs.inside_jobs import InsideJobs
from benchpool_scheduler.service.jobs.job_file_quota import JobFileQuota
from benchpool_scheduler.service.jobs.jobs import Jobs
from benchpool_scheduler.service.jobs.logs import JobLogs
from benchpool_scheduler.service.jobs.previews import Previews
from benchpool_scheduler.service.jobs.run_differences import RunDifferences
from benchpool_scheduler.service.jobs.sweeps.array_standings import ArrayStandings
from benchpool_scheduler.service.jobs.sweeps.sweep_book import SweepBook
from benchpool_scheduler.service.jobs.uploads import ContentStore, UploadedContents
from benchpool_scheduler.service.ledger.hours_used import HoursUsed
from benchpool_scheduler.service.ledger.job_curves import JobCurves
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.usage_decay import HOUR_S, UsageDecay
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.observed.service_settings import (
    NO_DEFAULTS,
    Containers,
    DefaultAmounts,
    ServiceSettings,
)
from benchpool_scheduler.service.pool import lasting_kinds
from benchpool_scheduler.service.pool.background_tasks import BackgroundTasks
from benchpool_scheduler.service.pool.figures import MetricsReader
from benchpool_scheduler.service.pool.job_history_loader import JobHistoryLoader
from benchpool_scheduler.service.pool.part_list import begin_parts
from benchpool_scheduler.service.pool.subscriptions import subscribe
from benchpool_scheduler.service.pool.use_history import UseHistory
from benchpool_scheduler.service.process import interpreter
from benchpool_scheduler.service.process.clock import Clock, SystemClock
from benchpool_scheduler.service.process.identifiers import new_job_id
from benchpool_scheduler.service.views.announcing import Announce, Announcer
from benchpool_scheduler.service.views.estimates import Estimates
from benchpool_scheduler.service.views.event_stream import EventStream
from benchpool_scheduler.service.views.events import Feed
from benchpool_scheduler.service.views.feed_writer import FeedWriter
from benchpool_scheduler.service.views.job_views import JobViews
from benchpool_scheduler.service.views.people import People
from benchpool_scheduler.service.views.pool_views import PoolViews
from benchpool_scheduler.service.views.prometheus_counters import PrometheusCounters
from benchpool_scheduler.service.views.use_views import UseViews
from benchpool_scheduler.store import Store, access_requests, curve_files, sweep_files
from benchpool_scheduler.store.audit_files import AuditFiles
from benchpool_scheduler.store.past_jobs import PastJobs
from benchpool_scheduler.telemetry import NO_SAMPLING, Sampling

CLOSE_S = 5.0
"""Timeout for pending starts and stops at close, in seconds; the next start completes the rest."""


class Pool:
    """The parts of one pool.

    Args:
        store: Store of accepted facts; opened and closed with the pool.
        runtime: Runtime of the workers; opened and closed with the pool.
        configuration: The first configuration; ``configuration.apply`` replaces it.
        state: The state folder, with ``objects``, ``jobs`` and ``homes``.
        new_id: Creates IDs of jobs and leases, 26 characters of [a-z0-9].
        base_url: Public address of the service; a job's ``url`` is ``<base_url>/jobs/<id>``.
        directory: The Hub's users and servers. ``clock``: source of times.
        accounts: ``system`` runs jobs as the system account of their user.
        environment: The administrator's allow-list by value, for every worker.
        configuration_file: File that ``configuration.apply`` writes, if any.
        notifications_file: Site settings of notifications; by default in the state folder.
        images: Whether jobs may name an image. ``containers``: workers are containers.
        default_amounts: Cores and memory of workers whose job names none.
        announce: Publishes new wait reasons. ``step``: called with each step of opening.
        contents: Store of uploaded contents; by default in the state folder.
        keep_configuration: Saves the text of ``configuration.apply`` outside a file.
        backups_kept: Number of daily database copies to keep, or 0 for none.
        ended: Called when a background task exited early; the process must then be restarted.
        sampling: Samplers of GPUs, and the interval. ``parker``: parks idle kernels.

    Attributes:
        jobs: Submission of and commands on jobs. ``logs``: output of their workers.
        inside: Access to running jobs. ``comparison``: differences of two jobs.
        sweeps: Many runs of one submission. ``services``: programs that answer requests.
        benches: Leases, queue and release of benches. ``idle``: the rule for idle ones.
        uploads: Uploaded contents. ``contents``: contents of a job, for its workers.
        views: Pool and quotas. ``people``: known users. ``gpu_use``: activity of GPUs.
        metering: Measurements, and their database (``metering.database``).
        events: Stream of events. ``curves``: values that jobs report.
        adoption: Unknown running jobs. ``nodes``: which machines take starts.
        configuration: Changes of it. For administrators: ``whatifs``, ``history``, ``audit``.
        notifier: Settings of notifications. ``deliveries``: sends them. ``use``: use reports.
        figures: Metrics for Prometheus. ``observed``: settings, observations and problems.
    """

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        configuration: Configuration,
        *,
        state: Path,
        directory: Directory,
        clock: Clock | None = None,
        new_id: Callable[[], str] = new_job_id,
        base_url: str = "",
        accounts: Literal["shared", "system"] = "shared",
        environment: Mapping[str, str] | None = None,
        configuration_file: Path | None = None,
        notifications_file: Path | None = None,
        images: bool = False,
        containers: Containers | None = None,
        default_amounts: DefaultAmounts = NO_DEFAULTS,
        announce: Announce | None = None,
        contents: ContentStore | None = None,
        keep_configuration: Keep | None = None,
        ended: Callable[[str], None] | None = None,
        backups_kept: int = 0,
        step: Callable[[str], None] = lambda text: None,
        sampling: Sampling = NO_SAMPLING,
        parker: Parker | None = None,
    ) -> None:
        settings = ServiceSettings(
            clock=clock or SystemClock(),
            directory=directory,
            state=state.absolute(),
            new_id=new_id,
            base_url=base_url,
            accounts=accounts,
            environment=dict(environment or {}),
            images=images,
            containers=containers,
            default_amounts=default_amounts,
            notifications_file=notifications_file,
            parker=parker,
        )
        self.observed = observed = SchedulerState(settings, configuration)
        self.runtime = runtime
        self.ledger = ledger = Ledger(store)
        self.usage = UsageDecay()
        past = PastJobs(settings.state / "scheduler" / "past-jobs")
        self.hours = HoursUsed(ledger, settings.clock.now, past)
        self._parts = BackgroundTasks(ended)
        self._older = JobHistoryLoader(ledger)
        self._step = step
        self._build_execution(ledger, observed)
        self.backups = Backups(ledger, observed, configuration_file, backups_kept)
        self.metering = Metering(ledger, observed, sampling)
        self._build_views(ledger, observed, announce)
        self._build_verbs(ledger, observed, contents, past)
        self.configuration = Reconfiguration(
            ledger, observed, configuration_file, self._reconfigured, keep_configuration
        )
        self._build_trail(observed, past)
        subscribe(self, self._older)

    def _build_trail(self, observed: SchedulerState, past: PastJobs) -> None:
        """Build the parts with files of their own, and their readers."""
        folder = observed.settings.state / "scheduler"
        states = self.views.gpu_states
        live, tick_s = self.metering.live, self.metering.tick_s
        self.watcher.newest_xid = live.newest_xid
        self.inside = InsideJobs(self.ledger, observed, self.runtime, self.actions, live, tick_s)
        self.history = RecordedHistory(self.ledger, observed, past)
        self.use = UseHistory(self.ledger, observed, states, self.history, self.metering)
        self.access = ProjectAccess(observed, self.configuration, folder / access_requests.FILE)
        self.whatifs = WhatIfs(
            self.ledger, observed, self.state_cache, self.configuration, self.history, self.hours
        )
        self.audit = AuditTrail(observed, AuditFiles(folder / "audit"))
        book = self.schedules.book
        self.deliveries = NotificationDelivery(self.ledger, observed, self.sweep_book, book)
        self.notifier = Notifier(self.deliveries)

    def _build_execution(self, ledger: Ledger, observed: SchedulerState) -> None:
        """Build the parts that decide and act."""
        runtime, want_pass = self.runtime, self.want_pass
        self.watcher = Watcher(ledger, observed, runtime, want_pass)
        self.actions = Actions(ledger, observed, runtime, self.watcher.enqueue)
        self.watcher.actions = self.actions
        self.watcher.drain = self.drain = Drain(ledger, observed, runtime, want_pass)
        self.state_cache = StateCache(ledger, observed)
        self.gates = BenchGates(ledger, runtime)
        self.reservations = Leases(ledger, observed, runtime.nodes_for_claim, want_pass)
        serve = self.reservations.serve
        self.passes = Passes(ledger, observed, self.actions, self.state_cache, serve)
        self.adoption = OrphanRecovery(ledger, observed, runtime, self.reservations, want_pass)
        self.nodes = NodeAdmin(ledger, observed, want_pass)

    def _build_views(
        self, ledger: Ledger, observed: SchedulerState, announce: Announce | None
    ) -> None:
        """Build the views."""
        self.estimates = Estimates(ledger, observed, self.state_cache, self.hours)
        folder = observed.settings.state / "scheduler"
        self.curves = JobCurves(folder / curve_files.FOLDER, observed.report)
        self.sweep_book = SweepBook(folder / sweep_files.FOLDER, observed.report)
        ledger.arrays = ArrayStandings(ledger, self.sweep_book, self.want_pass)
        trial_of = self.sweep_book.of_job
        job_views = JobViews(ledger, observed, self.estimates, self.curves.newest, trial_of)
        self.views = PoolViews(
            ledger,
            observed,
            self.hours,
            self.reservations.waiting,
            lambda: self.benches.asked.all(),
        )
        self.people = People(ledger, observed)
        self.gpu_use = UseViews(ledger, observed, self.metering.live)
        self.announcer = Announcer(ledger, job_views, announce)
        self.feed = Feed(int(observed.settings.clock.now() * 1_000_000))
        self.feed_writer = FeedWriter(ledger, self.feed, self.views.event)
        self.events = EventStream(self.feed, ledger, observed, job_views, self.views)
        self._job_views = job_views

    def _build_verbs(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        contents: ContentStore | None,
        past: PastJobs,
    ) -> None:
        """Build the operations for callers and the periodic work."""
        want_pass = self.want_pass
        self.uploads = UploadedContents(ledger, observed, contents)
        self.contents = JobContents(ledger, self.uploads)
        self.backups.contents = self.contents.of_unfinished
        self.homes = HomeQuota(observed)
        self.files = JobFileQuota(ledger, observed, self.runtime)
        admission = Admission(
            ledger, observed, self.uploads, self.homes, self.files, self.hours, want_pass
        )
        commands = Commands(ledger, observed, self.actions, admission, want_pass)
        previews = Previews(ledger, observed, self.state_cache, admission, self.estimates)
        self.jobs = Jobs(ledger, observed, admission, commands, previews, self._job_views)
        kinds = lasting_kinds.of(self, admission, commands, self._job_views)
        self.sweeps, self.schedules, self.services, self.admitted = kinds
        self.comparison = RunDifferences(self.jobs, self.contents, observed, self.runtime)
        self.logs = JobLogs(ledger, observed, self.runtime, self.curves)
        denied = self.runtime.denied_devices
        self.benches = Benches(ledger, self.reservations, observed, denied)
        self.idle = IdleBenchVerbs(ledger, observed, self.runtime, self.reservations)
        self.reservations.given_up = lambda: self.idle.watcher.given_up
        self.inbound = InboundJobs(
            ledger, observed, self.runtime, admission, commands, self.reservations
        )
        self.housekeeping = Housekeeping(
            ledger,
            observed,
            self.runtime,
            self.usage,
            self.hours,
            self.reservations,
            RetentionCleaner(ledger, observed, self.runtime, self.uploads, past),
            self.adoption,
            self.backups,
            self.actions.stops,
            want_pass,
        )
        self.auditor = Auditor(ledger, observed)
        self.counters = PrometheusCounters(ledger)
        self.figures = MetricsReader(
            ledger,
            observed,
            self.usage,
            self.views,
            admission,
            self.counters,
            self.auditor,
            self.actions.stops,
            self.metering.live,
        )

    # ------------------------------------------------------------------ life cycle

    async def open(self) -> None:
        """Read the store, find running workers, complete work that a crash interrupted, start
        passes.

        Errors: Unavailable if another process holds the store or it is damaged, InvalidInput if the
        benches do not fit.
        """
        interpreter.prepare()
        self._step("reads its jobs")
        await self.ledger.open()
        await self.idle.watcher.open()
        for book in (self.sweep_book, self.schedules.book, self.services.book):
            await book.open()
        self._step("checks nodes and users")
        half_life_s = self.observed.now.configuration.policy.usage_half_life_h * HOUR_S
        self.usage.restore(self.ledger.saved_use, self.observed.settings.clock.now(), half_life_s)
        self.estimates.restore()
        self.nodes.restore()
        try:
            self.uploads.prepare()
            await self.housekeeping.see_machines()
            await self.housekeeping.ask_hub()
            self.housekeeping.refuse_benches_that_do_not_fit()
            if self.ledger.job_index.live:
                self._step("finds running jobs again")
            await recovery.recover(self.ledger, self.observed, self.runtime)
            self.adoption.refresh()
            await self.housekeeping.see_machines()
            await self.gates.hold_all()
            self.housekeeping.count_use()
            await see_hours(self.hours, self.observed)
        except BaseException:
            await self.runtime.close()
            await self.ledger.store.close()
            raise
        await self.audit.open()
        await self.deliveries.open()
        await self.configuration.open()
        self.counters.start()
        begin_parts(self, self._parts, self._older)
        self.want_pass()

    async def close(self) -> None:
        """Stop passes and release runtime and store; workers run on."""
        self._parts.closing()
        self.feed_writer.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.actions.finish()
        await self.actions.stops.close()
        await self.homes.close()
        await self.files.close()
        await self.drain.close()
        async with self.ledger.lock:
            self._parts.cancel()
        await self._parts.gone()
        await self.use.close()
        await self.idle.close()
        await self.deliveries.close()
        self.passes.close()
        await self.metering.close()
        await self.curves.close()
        with contextlib.suppress(BenchpoolError):
            self.housekeeping.count_use()
            await self.housekeeping.save_use()
            await self.estimates.save()
        await self.runtime.close()
        await self.audit.close()
        await self.ledger.store.close()

    async def whole(self) -> None:
        """Wait until all jobs are loaded, including old ones. Errors: Unavailable."""
        await self._older.whole()

    def want_pass(self) -> None:
        """Request a pass."""
        self.passes.want()

    def _reconfigured(self) -> None:
        update_hours(self.hours, self.observed)
        self.state_cache.renew()
        self.want_pass()
