"""The history of use as one part of the pool: the database, what writes it, what reads it."""

from __future__ import annotations

import asyncio
import logging

from benchpool_scheduler.contract.use import (
    EnoughGpus,
    EnoughQuery,
    IdleBenches,
    IdleBenchesQuery,
    UseQuery,
    UseReport,
)
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.enough_replays import EnoughReplays
from benchpool_scheduler.service.administration.fleet import Fleet
from benchpool_scheduler.service.administration.history import RecordedHistory
from benchpool_scheduler.service.administration.idle_dry_run import IdleDryRun
from benchpool_scheduler.service.administration.use_reader import UseReader
from benchpool_scheduler.service.administration.use_report import UseReports
from benchpool_scheduler.service.execution.passes import Passes
from benchpool_scheduler.service.housekeeping.hpc_job_files import HpcJobFiles
from benchpool_scheduler.service.housekeeping.job_measuring import JobMeasuring
from benchpool_scheduler.service.housekeeping.metering import Metering
from benchpool_scheduler.service.housekeeping.occupancy_recorder import OccupancyRecorder
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.views.gpu_states import GpuStates
from benchpool_scheduler.service.views.used_so_far import UsedSoFarReader
from benchpool_scheduler.telemetry import FAULTS

log = logging.getLogger(__name__)

AFTER_START_S = 10.0
"""What people may want to see first is made so long after a start, which it does not delay."""


class UseHistory:
    """Who had which GPU, what it did, and reports of both.

    Args:
        gpu_states: What each GPU is doing; they hear the same news first.
        history: The jobs that ended.
        metering: What measures; who held what is written to its database, too.

    Attributes:
        telemetry: What was measured, and who held what. ``fleet``: the pool at a glance.
        job_measuring: Keeps with each job what was measured of it. ``so_far``: what those that
            hold GPUs have used until now.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        gpu_states: GpuStates,
        history: RecordedHistory,
        metering: Metering,
    ) -> None:
        self.telemetry = metering.database
        self.job_measuring = JobMeasuring(ledger, observed, metering)
        self._recorder = OccupancyRecorder(ledger, observed, gpu_states, self.telemetry)
        folder = observed.settings.state / "scheduler" / "hpc-jobs"
        self._hpc_jobs = HpcJobFiles(ledger, observed, folder)
        reader = UseReader(ledger, self.telemetry, self._recorder.write)
        self._reports = UseReports(ledger, observed, reader, history.past)
        self.fleet = Fleet(ledger, observed, reader, metering.settle, history.past)
        self.so_far = UsedSoFarReader(ledger, observed, self.telemetry)
        self._replays = EnoughReplays(observed, history)
        self._idle = IdleDryRun(observed, self.telemetry)

    async def report(self, caller: Caller, query: UseQuery) -> UseReport:
        """Return where GPU-hours went. Errors: InvalidInput for a range that is none."""
        return await self._reports.report(caller, query)

    async def enough(self, caller: Caller, query: EnoughQuery) -> EnoughGpus:
        """Say how many GPUs would have been enough. Errors: as ``EnoughReplays.ask``."""
        return await self._replays.ask(caller, query)

    async def idle_benches(self, caller: Caller, query: IdleBenchesQuery) -> IdleBenches:
        """Say what a rule for idle benches would have freed. Errors: as ``IdleDryRun.ask``."""
        return await self._idle.ask(caller, query)

    def subscribe(self, ledger: Ledger, observed: SchedulerState, passes: Passes) -> None:
        """Hear the news, after those who keep the states of GPUs."""
        ledger.gpus_moved.subscribe(self._recorder.moved)
        ledger.jobs_changed.subscribe(self._recorder.jobs_changed)
        ledger.jobs_changed.subscribe(self.job_measuring.jobs_changed)
        observed.replaced.subscribe(self._recorder.see)
        passes.made.subscribe(self._recorder.pass_made)
        ledger.gpus_moved.subscribe(self._hpc_jobs.moved)
        observed.replaced.subscribe(self._hpc_jobs.see)

    async def run(self) -> None:
        """Record for ever, tell dcgm-exporter, and keep with jobs what they used."""
        await asyncio.gather(
            self._recorder.run(),
            self._hpc_jobs.run(),
            self.job_measuring.run(),
            self._make_fleet_ready(),
        )

    async def _make_fleet_ready(self) -> None:
        await asyncio.sleep(AFTER_START_S)
        try:
            await self.fleet.make_ready()
        except FAULTS as fault:
            log.info("the hours of the last week could not be read ahead (%s)", fault)

    async def close(self) -> None:
        """Write what goes on until now."""
        await self._recorder.close()
