"""Measured activity of GPUs, workers and benches: sampled every few seconds, saved once a minute.

A failing or hanging driver, or an unwritable database, affects no other part.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from benchpool_scheduler.contract.node_report import NodeReport, NodeReportTaken
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.service.ledger import holders
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.telemetry.database import Database
from benchpool_scheduler.telemetry.live import LASTING_TICKS, LiveUse, shortened
from benchpool_scheduler.telemetry.local_workers import LocalWorkers
from benchpool_scheduler.telemetry.recording import Recorder
from benchpool_scheduler.telemetry.sampler import HeldProcesses, Sampling
from benchpool_scheduler.telemetry.samples import (
    GpuSample,
    HeldSample,
    HeldWorkerSample,
    WorkerSample,
)
from benchpool_scheduler.telemetry.simulated import SimulatedSampler
from benchpool_scheduler.telemetry.sqlite_storage import SqliteFile
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.worker_id import WorkerId

log = logging.getLogger(__name__)

WRITE_S = 60.0
HANGS_S = 30.0
"""Timeout of a sample after which the driver is reported as hanging, in seconds."""

HANGS = (
    "The GPU driver does not respond, so GPU use is not measured. Jobs keep running. If this "
    "persists, run nvidia-smi, and restart the machine if it does not respond."
)


class Metering:
    """Sampler that joins samples with their holders, and publishes and saves them.

    Args:
        sampling: Samplers of real GPUs, and the interval. Simulated GPUs follow the processor
            use of their holders.

    Attributes:
        live: Latest samples. ``seen``: publishes samples of GPUs. ``workers_seen``: publishes
            samples of the processes of workers and benches.
        database: Saved samples, usable by other parts until ``close``.
        recorder: Writer of the database.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        sampling: Sampling,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._sampler = sampling.sampler
        self._simulated = SimulatedSampler()
        settings = observed.settings
        self._workers = sampling.workers or LocalWorkers(Folders(settings.state))
        self._reports = sampling.reports
        self.database = Database(
            sampling.storage or SqliteFile(settings.state / "scheduler"), settings.clock.now
        )
        self.recorder = Recorder(self.database)
        self.tick_s = sampling.every_s
        self.live = LiveUse(self.tick_s)
        self.seen: Topic[Sequence[HeldSample]] = Topic()
        self.workers_seen: Topic[Sequence[WorkerSample]] = Topic()
        self._looking: asyncio.Task[None] | None = None
        self._fault: str | None = None
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        """Sample and save until cancelled; return at once if measuring is switched off."""
        if not self.tick_s:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._measure())
            tasks.create_task(self._write())

    async def close(self) -> None:
        """Save the remaining samples, and release the driver and the file."""
        if self.tick_s:
            await self.settle()
            if self._looking is None or self._looking.done():
                await asyncio.to_thread(self._sampler.close)
        self.database.close()

    async def settle(self) -> None:
        """Save all samples so far, so that readers of the database see them."""
        async with self._writing:
            await asyncio.to_thread(self.recorder.write)
        self._observed.report("telemetry-database", self.recorder.problem)

    def take_report(self, node: str, report: NodeReport) -> NodeReportTaken:
        """Accept the report of a node's agent. Errors: NotFound if none is expected."""
        if self._reports is None:
            raise NotFound(
                "This pool accepts no node reports: the chart's telemetry.agent.enabled is off."
            )
        self._reports.take(node, report, self._observed.settings.clock.now())
        return NodeReportTaken(self._reports.every_s)

    async def _measure(self) -> None:
        while True:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._guarded_look())
                # A hanging sample is left alone, and no second one is started.
                await asyncio.wait({self._looking}, timeout=HANGS_S)
            hangs = not self._looking.done()
            fault = self._fault or self._sampler.problem
            self._observed.report("telemetry", HANGS if hangs else fault)
            await asyncio.sleep(self.tick_s)

    async def _guarded_look(self) -> None:
        try:
            await self.look()
        except Exception as error:
            fault = f"GPU use cannot be measured now ({type(error).__name__}: {error})."
            if fault != self._fault:  # logged once, not every tick
                log.exception("GPU use could not be measured; retrying")
            self._fault = fault
        else:
            self._fault = None

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(WRITE_S)
            await self.settle()

    async def look(self) -> None:
        """Take one sample; publish and record it."""
        now = self._observed.settings.clock.now()
        devices = self._observed.now.inventory.devices
        held = list(self._processes())
        gpus, workers = await asyncio.to_thread(
            self._sample,
            [it.uuid for it in devices if not it.simulated],
            [it.uuid for it in devices if it.simulated],
            held,
            now,
        )
        most_s = LASTING_TICKS * self.tick_s
        samples = [
            HeldSample(shortened(it, most_s), holders.of_sample(self._ledger, it)) for it in gpus
        ]
        who = {it.of: it.holder for it in held}
        self.live.see(samples)
        self.recorder.add(
            samples, [HeldWorkerSample(it, who[it.of]) for it in workers if it.of in who]
        )
        self.seen.publish(samples)
        self.workers_seen.publish(workers)

    def _processes(self) -> list[HeldProcesses]:
        """Return the workers and benches that hold resources now."""
        benches = [
            HeldProcesses(lease.id, holders.of_lease(lease), lease.gpus, 0.0)
            for lease in self._ledger.leases()
        ]
        workers = [
            HeldProcesses(
                WorkerId(job.id, attempt.attempt, worker.index),
                holders.of_worker(job, attempt, worker),
                worker.gpus,
                attempt.cpus or 0.0,
            )
            for job, attempt, worker in holders.living_workers(self._ledger)
            if worker.started is not None
        ]
        return benches + workers

    def _sample(
        self,
        real: Sequence[str],
        simulated: Sequence[str],
        held: Sequence[HeldProcesses],
        now: float,
    ) -> tuple[list[GpuSample], list[WorkerSample]]:
        """Read samples from driver and kernel; blocks."""
        workers = list(self._workers.sample_workers(held, now))
        # The first process of a bench only serves pages, so its use is left out.
        used = {
            it.of: max(it.cpu_s - it.first_cpu_s, 0.0) / it.span_s / max(it.cpus, 1.0)
            for it in workers
        }
        share = {gpu: used[it.of] for it in held if it.of in used for gpu in it.gpus}
        gpus = [
            *(self._sampler.sample(real, now, share) if real else ()),
            *self._simulated.sample(simulated, now, share),
        ]
        return gpus, workers
