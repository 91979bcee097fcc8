"""History of use as one part of the pool: database, writers and readers."""

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
"""Delay after a start before the first overview is prepared, in seconds, so that starts are
fast.
"""


class UseHistory:
    """Holders and activity of GPUs, and reports of both.

    Args:
        gpu_states: States of the GPUs; subscribed before this part to the same events.
        history: Jobs that have ended.
        metering: Sampler, whose database also stores the holders.

    Attributes:
        telemetry: Database of samples and holders. ``fleet``: overview of the pool.
        job_measuring: Saves each job's measurements. ``so_far``: use of running jobs until now.
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
        """Return where GPU-hours went. Errors: InvalidInput for an invalid range."""
        return await self._reports.report(caller, query)

    async def enough(self, caller: Caller, query: EnoughQuery) -> EnoughGpus:
        """Return how many GPUs would have been enough. Errors: as ``EnoughReplays.ask``."""
        return await self._replays.ask(caller, query)

    async def idle_benches(self, caller: Caller, query: IdleBenchesQuery) -> IdleBenches:
        """Return what a rule for idle benches would have freed. Errors: as ``IdleDryRun.ask``."""
        return await self._idle.ask(caller, query)

    def subscribe(self, ledger: Ledger, observed: SchedulerState, passes: Passes) -> None:
        """Subscribe to events, after the states of GPUs."""
        ledger.gpus_moved.subscribe(self._recorder.moved)
        ledger.jobs_changed.subscribe(self._recorder.jobs_changed)
        ledger.jobs_changed.subscribe(self.job_measuring.jobs_changed)
        observed.replaced.subscribe(self._recorder.see)
        passes.made.subscribe(self._recorder.pass_made)
        ledger.gpus_moved.subscribe(self._hpc_jobs.moved)
        observed.replaced.subscribe(self._hpc_jobs.see)

    async def run(self) -> None:
        """Record holders, write the files for dcgm-exporter and save job measurements until
        cancelled.
        """
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
            log.info("the hours of the last week could not be preloaded (%s)", fault)

    async def close(self) -> None:
        """Write open intervals until now."""
        await self._recorder.close()
