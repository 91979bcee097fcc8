"""What GPUs, workers and benches really do: measured every few seconds, kept once a minute.

Neither a driver that fails or hangs nor a database that cannot be written stops anything else.
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
"""The driver may take so long for one look before it is said that it hangs."""

HANGS = (
    "The driver of the GPUs does not answer: what they do is not measured. Jobs run on; if it "
    "stays so, see whether nvidia-smi answers, and restart the machine if it does not."
)


class Metering:
    """Measures, joins with who holds what, shows and keeps.

    Args:
        sampling: What measures real GPUs, and how often; simulated ones follow the processor use
            of their holders.

    Attributes:
        live: What was measured last. ``seen``: news of it; ``workers_seen``: of the processes of
            workers and benches. ``database``: what was measured before, which others may use until
            ``close``. ``recorder``: what writes to it.
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
        """Measure and write, for ever; at once nothing where it is switched off."""
        if not self.tick_s:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._measure())
            tasks.create_task(self._write())

    async def close(self) -> None:
        """Write what is left, and let go of the driver and the file."""
        if self.tick_s:
            await self.settle()
            if self._looking is None or self._looking.done():
                await asyncio.to_thread(self._sampler.close)
        self.database.close()

    async def settle(self) -> None:
        """Write all that was measured so far, so that readers of the database see it."""
        async with self._writing:
            await asyncio.to_thread(self.recorder.write)
        self._observed.report("telemetry-database", self.recorder.problem)

    def take_report(self, node: str, report: NodeReport) -> NodeReportTaken:
        """Take what the agent of a node reports. Errors: NotFound, where none is expected."""
        if self._reports is None:
            raise NotFound(
                "Nobody expects reports of nodes here: the chart's telemetry.agent.enabled is off."
            )
        self._reports.take(node, report, self._observed.settings.clock.now())
        return NodeReportTaken(self._reports.every_s)

    async def _measure(self) -> None:
        while True:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._guarded_look())
                # One that hangs is left alone, and no second is begun.
                await asyncio.wait({self._looking}, timeout=HANGS_S)
            hangs = not self._looking.done()
            fault = self._fault or self._sampler.problem
            self._observed.report("telemetry", HANGS if hangs else fault)
            await asyncio.sleep(self.tick_s)

    async def _guarded_look(self) -> None:
        try:
            await self.look()
        except Exception as error:
            fault = f"What GPUs do cannot be measured now ({type(error).__name__}: {error})."
            if fault != self._fault:  # said once, not at every tick
                log.exception("the GPUs could not be measured; it is tried again")
            self._fault = fault
        else:
            self._fault = None

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(WRITE_S)
            await self.settle()

    async def look(self) -> None:
        """Measure once, and show and keep what was found."""
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

    # ------------------------------------------------------------------ inside

    def _processes(self) -> list[HeldProcesses]:
        """Return the workers and benches that hold something now."""
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
        """Ask driver and kernel; in a thread."""
        workers = list(self._workers.sample_workers(held, now))
        # Who serves pages computes nothing: that is left to what runs below it.
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
