"""A job without any activity is detected, its stacks are kept, and the chosen action is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.contract.hanging import IfHanging
from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.contract.stacks import (
    PeekQuery,
    ProcessStacks,
    ThreadStack,
    WorkerStacks,
)
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.notifications import job_messages
from benchpool_scheduler.notifications.delivery_state import Subscription
from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerId, WorkerMetrics
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.execution import recovery
from benchpool_scheduler.telemetry.sampler import NoSampler, NoWorkers, Sampling
from benchpool_scheduler.telemetry.samples import GpuSample, HeldSample, WorkerSample
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached, sleeper, until_job
from benchpool_support.scripted import ScriptedRuntime, devices

YAML = """
version: 1
projects: [{name: story, quota: 8, members: [susan]}]
hanging: {after_s: 600}
retries: {hanging: {times: 1, pause_s: 0}}
"""
TICK_S = 10.0
HANGING = PeekQuery(hanging=True)


class Seen(ScriptedRuntime):
    """Workers with readable stacks, whose logs grow when a test sets ``log_bytes``."""

    log_bytes = 0

    def __init__(self) -> None:
        super().__init__(devices(4))
        self.left: dict[str, bytes] = {}

    async def stacks(self, worker: WorkerId) -> WorkerStacks:
        threads = [ThreadStack("MainThread", ["recv (socket.py:5)"])]
        return WorkerStacks([ProcessStacks(7, "python train.py", "py-spy", threads)])

    async def find_log_offset(self, worker: WorkerId, since: float | None) -> int:
        return self.log_bytes

    async def leave(self, job: str, name: str, text: bytes) -> None:
        self.left[name] = text


class Site:
    """A pool with a clock, and measurements of the workers of one job."""

    def __init__(self, tmp_path: Path, text: str = YAML) -> None:
        self.runtime, self.clock = Seen(), FakeClock()
        self.pool: Pool = make_pool(
            tmp_path,
            runtime=self.runtime,
            clock=self.clock,
            configuration=load(text),
            sampling=Sampling(NoSampler(), TICK_S, workers=NoWorkers()),
        )

    async def running(self, **asked: object) -> Job:
        job = await self.pool.jobs.submit(SUSAN, sleeper(project="story", **asked))
        return await reached(self.pool, job.id, State.RUNNING)

    async def pass_s(self, job: Job, seconds: float, *, cores: float = 0.0) -> None:
        """Let time pass while each worker of a job uses the given number of cores."""
        for _ in range(int(seconds / TICK_S)):
            self.clock.pass_s(TICK_S)
            at = self.clock.now()
            self.pool.inside.hangs.measured(
                [
                    WorkerSample(WorkerId(job.id, job.attempt, index), at, TICK_S, cores * TICK_S)
                    for index in range(job.workers)
                ]
            )
            await self.pool.inside.hangs.look()

    def now(self, job: Job) -> Job:
        return self.pool.jobs.detail(SUSAN, job.id).job


async def test_hanging_job_is_reported_with_stacks_until_active(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    async with opened(site.pool) as pool:
        job = await site.running(workers=2)
        await site.pass_s(job, 590, cores=0.04)
        assert site.now(job).reason is None
        await site.pass_s(job, 20)
        hanging = site.now(job)
        assert (hanging.state, hanging.reason and hanging.reason.code) == (State.RUNNING, "hanging")
        assert hanging.reason is not None
        assert hanging.reason.text == (
            "It shows no activity (noticed after 10 min): no progress, no output, no "
            "CPU time and no work on its GPUs."
        )
        assert f"`benchpool peek --hanging {job.id[:8]}`" in hanging.reason.remedy
        look = await pool.inside.peeks.peek(SUSAN, job.id, HANGING)
        assert [it.who for it in look.groups] == ["workers 0-1"]
        assert b"recv (socket.py:5)" in site.runtime.left["hanging-1.txt"]
        assert site.runtime.notices == []
        with pytest.raises(NotFound):
            await pool.inside.peeks.peek(JOE, job.id, HANGING)
        site.runtime.log_bytes = 9
        await site.pass_s(job, 10)
        assert site.now(job).reason is None
        # The kept stacks stay, and a new idle period begins at the last activity.
        await site.pass_s(job, 590)
        assert site.now(job).reason is None
        assert (await pool.inside.peeks.peek(SUSAN, job.id, HANGING)).at == look.at


@pytest.mark.parametrize("sign", ["processor", "log", "values", "gpu"])
async def test_any_activity_prevents_hang_report(tmp_path: Path, sign: str) -> None:
    site = Site(tmp_path)
    async with opened(site.pool) as pool:
        job = await site.running()
        for _ in range(3):
            await site.pass_s(job, 500)
            if sign == "log":
                site.runtime.log_bytes += 1
            if sign == "values":
                who = WorkerId(job.id, 1, 0)
                pool.inside.hangs.reported(WorkerMetrics(who, site.clock.now(), ()))
            if sign == "gpu":
                gpu = site.runtime.launched[WorkerId(job.id, 1, 0)].gpus[0]
                sample = GpuSample(site.clock.now(), TICK_S, gpu, activity=0.5)
                idle = GpuSample(site.clock.now() + TICK_S, TICK_S, gpu, activity=0.0)
                pool.metering.live.see([HeldSample(sample), HeldSample(idle)])
            await site.pass_s(job, 10, cores=0.5 if sign == "processor" else 0.0)
        assert site.now(job).reason is None
        with pytest.raises(NotFound, match="No hang of job"):
            await pool.inside.peeks.peek(SUSAN, job.id, HANGING)


async def test_measurement_gap_is_not_counted_as_hanging(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with opened(site.pool):
        job = await site.running()
        await site.pass_s(job, 300)
        site.clock.pass_s(3600)  # the machine slept, or its agent sent no report
        await site.pool.inside.hangs.look()
        assert site.now(job).reason is None
        await site.pass_s(job, 590)
        assert site.now(job).reason is None
        await site.pass_s(job, 20)
        assert site.now(job).reason is not None


async def test_hanging_job_is_requeued_up_to_retry_limit(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path)
    async with opened(site.pool) as pool:
        job = await site.running(workers=2, if_hanging=IfHanging.REQUEUE)
        await site.pass_s(job, 620)
        notices = await site.runtime.until_noticed(2)
        assert {worker.worker for worker, _ in notices} == {0, 1}
        assert notices[0][1].text == "It hangs and is tried again."
        # A service restarted meanwhile sends the stops again.
        assert len(list(recovery.stops_under_way(pool.ledger, pool.observed))) == 2
        for worker, _ in notices:
            end = WorkerEnded(
                worker, site.clock.now(), 143, EndedBy.NOTICE, None, None, EndCause.EXIT_CODE, "t"
            )
            site.runtime.alive.discard(worker)
            site.runtime.report(end)
        again = await until_job(
            pool, job.id, lambda now: now.state is State.RUNNING and now.attempt == 2
        )
        assert again.reason is None
        assert pool.jobs.detail(SUSAN, job.id).retried == (
            "Tried again once after hanging; it starts over, because it had saved nothing."
        )
        await site.pass_s(again, 620)
        last = site.now(job)
        assert last.reason is not None
        assert last.reason.text.endswith(
            "It is not tried again: it was retried once after hanging, which is the limit."
        )
        assert len(site.runtime.notices) == 2


async def test_hang_detection_is_opt_in_without_site_setting(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, YAML.replace("hanging: {after_s: 600}\n", ""))
    async with opened(site.pool):
        quiet = await site.running()
        asks = await site.running(if_hanging=IfHanging.TELL)
        await site.pass_s(quiet, 1500)
        for job in (asks, quiet):
            assert site.now(job).reason is None
        await site.pass_s(asks, 1820)
        assert site.now(quiet).reason is None
        assert site.now(asks).reason is not None


async def test_hanging_job_notifies_owner_once(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with opened(site.pool) as pool:
        job = await site.running()
        subscription = Subscription("susan", site.clock.now() - 1, (NotificationEvent.HANGING,))
        await site.pass_s(job, 620)
        record = pool.ledger.job(job.id)
        assert record is not None
        first, second = (
            list(job_messages.of_job(record, None, subscription, site.clock.now() + later))
            for later in (0.0, 500.0)
        )
        assert [it.id for it in first] == [it.id for it in second]
        assert first[0].text.startswith(f"Job sleep ({job.id[:8]}) hangs. It shows no activity")
