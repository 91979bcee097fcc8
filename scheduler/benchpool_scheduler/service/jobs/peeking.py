"""Stacks and activity of a running job, for callers who may see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from benchpool_scheduler.contract.stacks import Peek, PeekQuery, WorkerStacks
from benchpool_scheduler.core.lifecycle.states import HOLDS_GPUS
from benchpool_scheduler.errors import NotFound, Refused
from benchpool_scheduler.phrases import count, visible
from benchpool_scheduler.runtime import Runtime, Stacks, WorkerId
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.kept_looks import KeptLooks
from benchpool_scheduler.service.jobs.lookup import visible_job
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.views.stack_groups import grouped
from benchpool_scheduler.store.records import AttemptRecord
from benchpool_scheduler.telemetry.live import LatestUse

MOST_WORKERS, AT_ONCE = 256, 16
"""Maximum number of workers whose stacks are read, and how many are read at a time."""

LAST_BYTES, LAST_LINES = 8192, 10
"""Size of the log's end that is read, in bytes, and number of its lines that are shown."""


NOW = PeekQuery()


class Peeks:
    """Reader of stacks of running jobs; concurrent requests for a job share one read.

    Args:
        live: Returns the latest measurement of each GPU at a given time.

    Attributes:
        kept: The saved stacks of jobs that hung.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        live: Callable[[float], Mapping[str, LatestUse]],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._live = live
        self._looks: dict[str, asyncio.Task[Peek]] = {}
        self.kept = KeptLooks(observed.settings.state)

    async def peek(self, caller: Caller, job: str, query: PeekQuery = NOW) -> Peek:
        """Return what a job is doing; concurrent requests share one answer.

        Errors: NotFound, also if stacks of a hang were not saved; Refused for a job that does not
        run.
        """
        record = visible_job(self._ledger, self._observed.now.configuration, caller, job)
        if query.hanging:
            found = await asyncio.to_thread(self.kept.newest, record.id)
            if found is None:
                raise NotFound(
                    f"No hang of job {record.id[:8]} ({visible(record.name)}) was detected, so no "
                    "stacks were saved."
                )
            return found
        attempt = self._ledger.attempt(record.id, record.attempt)
        if attempt is None or record.state not in HOLDS_GPUS:
            raise Refused(
                f"Job {record.id[:8]} ({visible(record.name)}) is {record.state}: only a "
                "running job has stacks. See its log.",
                code="not-running",
            )
        return await self.of_attempt(attempt)

    async def of_attempt(self, attempt: AttemptRecord) -> Peek:
        """Return what a running attempt is doing."""
        job = attempt.job
        look = self._looks.get(job)
        if look is None:
            workers = [WorkerId(job, attempt.attempt, it.index) for it in attempt.live_workers]
            gpus = [gpu for it in attempt.live_workers for gpu in it.gpus]
            look = asyncio.create_task(self._look(job, attempt.attempt, workers, gpus))
            self._looks[job] = look
            look.add_done_callback(lambda _: self._looks.pop(job, None))
        return await asyncio.shield(look)

    async def _look(
        self, job: str, attempt: int, workers: Sequence[WorkerId], gpus: Sequence[str]
    ) -> Peek:
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(worker: WorkerId) -> WorkerStacks:
            async with turns:
                if not isinstance(self._runtime, Stacks):
                    return WorkerStacks(why="This pool cannot read the stacks of its workers.")
                return await self._runtime.stacks(worker)

        found = await asyncio.gather(*(one(worker) for worker in workers[:MOST_WORKERS]))
        now = self._observed.settings.clock.now()
        groups = grouped({it.worker: stacks for it, stacks in zip(workers, found, strict=False)})
        measured = self._live(now)
        return Peek(
            job=job,
            attempt=attempt,
            at=moment(now),
            text=_summary(len(found), len(groups)),
            groups=groups,
            gpus=[gpu_line(measured[gpu]) for gpu in gpus if gpu in measured],
            log=await self._last_lines(WorkerId(job, attempt, 0)),
        )

    async def _last_lines(self, worker: WorkerId) -> list[str]:
        end = await self._runtime.find_log_offset(worker, None)
        chunk = await self._runtime.read_log(worker, max(0, end - LAST_BYTES), LAST_BYTES)
        lines = chunk.data.decode(errors="replace").splitlines()[-LAST_LINES:]
        return [visible(line[:500]) for line in lines]


def _summary(workers: int, groups: int) -> str:
    """Return the number of workers read, and whether their stacks are the same.

    >>> _summary(1, 1), _summary(8, 1), _summary(8, 2)
    ('1 worker.', '8 workers, all alike.', '8 workers, 2 different stacks.')
    """
    if workers < 2:
        return f"{count(workers, 'worker')}."
    alike = "all alike" if groups == 1 else f"{groups} different stacks"
    return f"{count(workers, 'worker')}, {alike}."


def gpu_line(latest: LatestUse) -> str:
    """Return the latest measurement of a GPU in a line.

    >>> from benchpool_scheduler.telemetry.samples import NO_HOLDER, GpuSample
    >>> sample = GpuSample(9.0, 1.0, "GPU-a", activity=0.25, memory_used_gib=7.5, power_w=250.4)
    >>> gpu_line(LatestUse(sample, NO_HOLDER, None))
    'GPU-a: busy 25 %, 7.5 GiB, 250 W'
    """
    sample = latest.sample
    parts = [
        None if sample.activity is None else f"busy {sample.activity * 100:.0f} %",
        None if sample.memory_used_gib is None else f"{sample.memory_used_gib:.1f} GiB",
        None if sample.power_w is None else f"{sample.power_w:.0f} W",
        None if sample.xid is None else f"XID {sample.xid}",
    ]
    return f"{sample.gpu}: {', '.join(part for part in parts if part) or 'nothing measured'}"
