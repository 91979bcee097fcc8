"""A replay applies GPU-hour budgets like the service, and reproduces the recorded history."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.configuration import Configuration, load
from benchpool_scheduler.contract.configuration import Setting
from benchpool_scheduler.contract.use import EnoughQuery
from benchpool_scheduler.contract.whatif import WhatIfQuestion
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.runtime import Launch
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.administration.history import History
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.housekeeping.month import see_hours
from benchpool_scheduler.simulation.replay.engine import Costs
from benchpool_scheduler.simulation.replay.pools import ReplayPool
from benchpool_scheduler.simulation.replay.trace import TraceJob
from benchpool_scheduler.simulation.whatif import Side, play_on, replay_both
from benchpool_support.clocks import FakeClock
from benchpool_support.examples import examples
from benchpool_support.pools import ADMIN, make_pool, opened, sleeper
from benchpool_support.scripted import ScriptedRuntime, devices

pytestmark = pytest.mark.slow

HOUR_S = 3600.0
BEGIN = 1_801_260_000.0  # 29 January 2027, 22:00 UTC: a month begins 50 hours later
CONFIGURATION = """
version: 1
projects:
  - {{name: research, quota: 6, gpu_hours: {{hard: {above}}}}}
  - {{name: vision, parent: research, quota: 3, limit: 3, members: [susan, joe],
      gpu_hours: {{hard: {hard}}}}}
  - {{name: speech, parent: research, quota: 3, limit: 3, members: [jemma]}}
gpu_hours: {{users: {{joe: {{soft: {soft}}}, jemma: {{hard: {hard}}}}}}}
"""


PROJECTS = {"susan": "vision", "joe": "vision", "jemma": "speech"}


class PlannedJob(NamedTuple):
    """Job of a user: hours until its submission, user, GPUs, and run time in hours."""

    at_h: float
    user: str
    gpus: int
    hours: float


class RunningRuntime(ScriptedRuntime):
    """Runtime whose workers begin when they are launched."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(devices(6), start_at_once=False)
        self._clock = clock

    async def run_worker(self, launch: Launch) -> None:
        await super().run_worker(launch)
        self.begin(launch.worker, self._clock.now())


class Month:
    """A service in virtual time; refused jobs are submitted again when the month begins."""

    def __init__(self, pool: Pool, clock: FakeClock, runtime: RunningRuntime) -> None:
        self.pool, self.clock, self.runtime = pool, clock, runtime
        self.began: dict[int, float] = {}
        self._events: list[tuple[float, int, str]] = []
        self._jobs: dict[str, int] = {}
        self._again: list[int] = []
        self.refused = False

    async def live(self, planned: Sequence[PlannedJob]) -> None:
        # Passes are made after all events of an instant, as in a replay.
        self.pool.passes.want = lambda: None  # type: ignore[method-assign]
        for number, one_job in enumerate(planned):
            heapq.heappush(self._events, (BEGIN + one_job.at_h * HOUR_S, number, "submit"))
        while self._events:
            at, number, what = heapq.heappop(self._events)
            self.clock.pass_s(at - self.clock.now())
            await see_hours(self.pool.hours, self.pool.observed)
            if what == "submit":
                await self._submit(number, planned[number])
            elif what == "end":
                self._end(number)
            else:
                again, self._again = self._again, []
                for one in again:
                    await self._submit(one, planned[one])
            await self._settle()
            self._note_starts(planned)
            if self._waits() and not any(it[2] == "month" for it in self._events):
                heapq.heappush(self._events, (self.pool.hours.renewed(), 10_000, "month"))

    def _waits(self) -> bool:
        return bool(self._again) or len(self.began) < len(self._jobs)

    async def _submit(self, number: int, one_job: PlannedJob) -> None:
        try:
            job = await self.pool.jobs.submit(
                Caller(one_job.user), sleeper(gpus=one_job.gpus, name="train")
            )
        except Refused as refused:
            if refused.code != "gpu-hours":
                raise
            self.refused = True
            self._again.append(number)
        else:
            self._jobs[job.id] = number

    def _end(self, number: int) -> None:
        (worker,) = (it for it in self.runtime.alive if self._jobs[it.job] == number)
        self.runtime.end(worker, 0, at=self.clock.now())

    def _note_starts(self, planned: Sequence[PlannedJob]) -> None:
        for worker in self.runtime.alive:
            number = self._jobs[worker.job]
            if number not in self.began:
                now = self.began[number] = self.clock.now()
                heapq.heappush(self._events, (now + planned[number].hours * HOUR_S, number, "end"))

    async def _settle(self) -> None:
        """Make passes until one changes nothing."""
        pool = self.pool
        for _ in range(20):
            await asyncio.sleep(0)
            while not pool.watcher.idle or pool.actions.busy:
                await asyncio.sleep(0)
            before = [(job.id, job.state) for job in pool.ledger.live()]
            await pool.passes.make()
            await pool.actions.finish()
            if before == [(job.id, job.state) for job in pool.ledger.live()] and pool.watcher.idle:
                return
        raise AssertionError("passes do not come to rest")


def replayed(side: Side, jobs: Sequence[TraceJob], zero: float) -> Sequence[tuple[float, str, int]]:
    """Return the start time, user and GPUs of each job in a replay."""
    runs = play_on(side, [(job, 1) for job in jobs], Costs())
    return sorted(
        (round(zero + (run.first_start_s or 0.0), 1), run.job.user or "", run.job.gpus)
        for run in runs
    )


PLANNED_JOBS = st.lists(
    st.builds(
        PlannedJob,
        at_h=st.integers(0, 5900).map(lambda hundredths: hundredths / 100),
        user=st.sampled_from(["susan", "joe", "jemma"]),
        gpus=st.integers(1, 3),
        hours=st.integers(20, 1200).map(lambda hundredths: hundredths / 100 + 0.001),
    ),
    min_size=2,
    max_size=12,
    unique_by=lambda one_job: one_job.at_h,
)


async def lived(
    planned: Sequence[PlannedJob], configuration: Configuration
) -> tuple[Sequence[tuple[float, str, int]], History, Side, bool]:
    """Return a service's starts, its history, its pool, and whether it refused a job."""
    clock = FakeClock(BEGIN)
    runtime = RunningRuntime(clock)
    with tempfile.TemporaryDirectory() as folder:
        numbers = itertools.count()
        pool = make_pool(
            Path(folder),
            configuration=configuration,
            runtime=runtime,
            clock=clock,
            new_id=lambda: f"{next(numbers):026d}",  # IDs of one instant are in order of submission
        )
        async with opened(pool):
            month = Month(pool, clock, runtime)
            await month.live(planned)
            past = await pool.history.of(400)
            seen = snapshots.snapshot(pool.ledger, pool.observed.now, clock.now())
    did = sorted(
        (round(at, 1), planned[number].user, planned[number].gpus)
        for number, at in month.began.items()
    )
    return did, past, Side(seen.nodes, seen.projects, seen.policy), month.refused


@given(
    planned=PLANNED_JOBS,
    hard=st.sampled_from([5.0, 20.0, 1e6]),
    above=st.sampled_from([12.0, 40.0, 1e6]),
    soft=st.sampled_from([0.5, 8.0]),
)
@settings(max_examples=examples(20), phases=[Phase.generate])
def test_replay_reproduces_starts_under_budget(
    planned: list[PlannedJob], hard: float, above: float, soft: float
) -> None:
    configuration = load(CONFIGURATION.format(hard=hard, above=above, soft=soft))
    did, past, side, _ = asyncio.run(lived(planned, configuration))
    assert len(did) == len(planned)
    budgets = configuration.hour_budgets
    recorded = replace(side, hours=budgets.from_zero(past.begun))
    assert replayed(recorded, past.jobs, past.begun) == did
    # The same from the submissions: the replay refuses the jobs that the service refused.
    wanted = [
        TraceJob(2, one.at_h * HOUR_S, one.hours * HOUR_S, one.gpus, PROJECTS[one.user],
                 one.user, 1)
        for one in sorted(planned)
    ]  # fmt: skip
    assert replayed(replace(side, hours=budgets.from_zero(BEGIN)), wanted, BEGIN) == did


async def test_replay_without_budgets_differs() -> None:
    planned = [
        PlannedJob(0.0, "susan", 3, 4.0),
        PlannedJob(1.0, "joe", 3, 1.0),
        PlannedJob(6.0, "susan", 1, 1.0),
    ]
    configuration = load(CONFIGURATION.format(hard=10.0, above=1e6, soft=1.0))
    did, past, side, refused = await lived(planned, configuration)
    assert refused
    february = BEGIN + 50 * HOUR_S
    assert [at for at, *_ in did] == [BEGIN, february, february + HOUR_S]
    free = replayed(side, past.jobs, past.begun)
    assert [at for at, *_ in free] == [BEGIN, BEGIN + 4 * HOUR_S, february]


async def test_what_if_reports_jobs_refused_by_budget(tmp_path: Path) -> None:
    clock = FakeClock(BEGIN)
    runtime = RunningRuntime(clock)
    text = CONFIGURATION.format(hard=1e6, above=1e6, soft=1e5)
    pool = make_pool(tmp_path, configuration=load(text), runtime=runtime, clock=clock)
    async with opened(pool):
        month = Month(pool, clock, runtime)
        await month.live([PlannedJob(0.0, "susan", 3, 4.0), PlannedJob(6.0, "susan", 1, 1.0)])
        question = WhatIfQuestion(
            settings=[Setting("projects.vision.gpu_hours.hard", 10)], history_days=5
        )
        answer = (await pool.whatifs.ask(ADMIN, question)).history
    assert answer is not None
    assert (answer.before.refused, answer.after.refused) == (0, 1)
    assert answer.after.mean_wait_h == pytest.approx(44 / 2)
    assert "would refuse 1 job instead of 0, until the next month begins" in answer.text


async def test_enough_gpus_estimate_applies_current_budgets(tmp_path: Path) -> None:
    clock = FakeClock(BEGIN)
    runtime = RunningRuntime(clock)
    text = CONFIGURATION.format(hard=10, above=1e6, soft=1e5)
    async with opened(
        make_pool(tmp_path, configuration=load(text), runtime=runtime, clock=clock)
    ) as pool:
        month = Month(pool, clock, runtime)
        await month.live([PlannedJob(0.0, "susan", 3, 4.0), PlannedJob(0.5, "joe", 1, 48.0)])
        answer = await pool.use.enough(ADMIN, EnoughQuery(days=5))
        assert (answer.jobs, answer.refused, answer.left_out) == (2, 0, 0)
        assert "refuse" not in answer.text
        lower = load(CONFIGURATION.format(hard=1, above=1e6, soft=1e5))
        pool.observed.put(replace(pool.observed.now, configuration=lower))
        answer = await pool.use.enough(ADMIN, EnoughQuery(days=5))
    assert (answer.jobs, answer.refused, answer.gpus) == (2, 1, 3)
    assert "would refuse 1 of them until the next month" in answer.text


def test_replay_excludes_jobs_with_zero_budget() -> None:
    configuration = load(CONFIGURATION.format(hard=0, above=9, soft=1))
    nodes = ReplayPool(1, 6).as_nodes()
    projects = tuple(it.project for it in configuration.projects)
    side = Side(nodes, projects, configuration.policy, configuration.hour_budgets)
    jobs = [
        TraceJob(2, 0.0, 60.0, 1, "speech", "ada", 1),
        TraceJob(3, 0.0, 60.0, 1, "vision", "susan", 1),
    ]
    found = replay_both(jobs, side, side, Costs())
    assert (found.before.jobs, found.left_out) == (1, 1)
