"""Monthly GPU-hours: counted to the second, kept over restarts, and refused above the limit."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.configuration import compare, load
from benchpool_scheduler.configuration.declared import document, objects
from benchpool_scheduler.configuration.months import month_of
from benchpool_scheduler.contract import Job, LeaseRequest, State
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_scheduler.contract.whatif import WhatIfQuestion
from benchpool_scheduler.core.fairness.gpu_hours import MonthUse
from benchpool_scheduler.core.model import (
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
)
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.notifications import conditions
from benchpool_scheduler.runtime import EndedBy, Launch, Notice, WorkerId
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.housekeeping.month import see_hours
from benchpool_scheduler.service.ledger.hours_used import tally
from benchpool_scheduler.store.past_jobs import HeldInterval
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import (
    ADMIN,
    HUB,
    JOE,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, devices

BENCH = LeaseRequest(user="susan", server="", gpus=2, spawn="1")
HOUR_S, DAY_S = 3600.0, 86_400.0
CONFIGURATION = """
version: 1
build: {users: {susan: 2}}
projects:
  - {name: research, quota: 4, gpu_hours: {hard: 20}}
  - {name: susan, parent: research, quota: 2, members: [susan], gpu_hours: {soft: 4, hard: 10}}
  - {name: joe, parent: research, quota: 2, members: [joe]}
"""


class ObedientRuntime(ScriptedRuntime):
    """Runtime whose workers start at once and end when they get a notice."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(devices(6), start_at_once=False)
        self._clock = clock

    async def run_worker(self, launch: Launch) -> None:
        await super().run_worker(launch)
        self.begin(launch.worker, self._clock.now())

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        if worker in self.alive:
            self.end(worker, 143, EndedBy.NOTICE, at=self._clock.now())


@asynccontextmanager
async def pool_at(folder: Path, clock: FakeClock, text: str = CONFIGURATION) -> AsyncIterator[Pool]:
    pool = make_pool(folder, configuration=load(text), runtime=ObedientRuntime(clock), clock=clock)
    async with opened(pool):
        yield pool


async def run_for(pool: Pool, clock: FakeClock, hours: float, gpus: int = 2) -> Job:
    """Let a job of susan run for the given hours, and end it."""
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=gpus))
    await reached(pool, job.id, State.RUNNING)
    clock.pass_s(hours * HOUR_S)
    await pool.jobs.act(SUSAN, job.id, "cancel")
    return await reached(pool, job.id, State.CANCELLED)


def used(pool: Pool, project: str) -> float:
    (found,) = [it for it in pool.views.status(ADMIN).projects if it.name == project]
    assert found.gpu_hours is not None
    return found.gpu_hours.used


# --------------------------------------------------------------------------- arithmetic


@given(
    st.lists(st.tuples(st.floats(0, 1e7), st.floats(0, 1e7), st.integers(1, 64)), max_size=20),
    st.lists(st.floats(0, 2e7), min_size=1, max_size=5),
)
def test_monthly_use_adds_up_to_total(
    spans: list[tuple[float, float, int]], cuts: list[float]
) -> None:
    held = [HeldInterval(begun, begun + lasts, gpus) for begun, lasts, gpus in spans]
    bounds = [0.0, *sorted(cuts), 3e7]
    parts = [tally(held, (a, b)).over_ms for a, b in itertools.pairwise(bounds)]
    whole = tally(held, (0.0, 3e7)).over_ms
    assert abs(sum(parts) - whole) <= sum(gpus for _, _, gpus in spans) * len(bounds)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 64))
def test_running_use_counts_until_now(begun: float, lasts: float, gpus: int) -> None:
    now, month = begun + lasts, (500.0, 1e9)
    going = tally([HeldInterval(begun, None, gpus)], month).hours(now - month[0])
    ended = tally([HeldInterval(begun, now, gpus)], month).hours(now - month[0])
    assert going == pytest.approx(ended, abs=gpus * 2 / 3_600_000)
    one = tally([HeldInterval(begun, None, gpus)], month)
    assert MonthUse().plus(one).plus(one, -1) == MonthUse()


@given(st.integers(0, 4_000_000_000), st.sampled_from(["UTC", "Europe/Zurich", "Asia/Kolkata"]))
def test_every_instant_belongs_to_one_month(at: int, zone: str) -> None:
    begins, ends = month_of(at, zone)
    assert begins <= at < ends
    assert month_of(ends, zone)[0] == ends
    assert month_of(begins, zone) == (begins, ends)


# --------------------------------------------------------------------------- in a pool


async def test_budget_conditions_appear_once_per_threshold(tmp_path: Path) -> None:
    clock = FakeClock()
    text = CONFIGURATION.replace("hard: 20", "hard: 9").replace(
        "soft: 4, hard: 10", "soft: 7.9, hard: 100"
    )
    async with pool_at(tmp_path, clock, text) as pool:
        seen: list[list[str]] = []
        for hours in (3.9, 0.2, 0.3, 0.2):  # of two GPUs: 7.8, 8.2, 8.8 and 9.2 GPU-hours
            await run_for(pool, clock, hours)
            await see_hours(pool.hours, pool.observed)
            now = pool.observed.now.hours
            there = conditions.of_budgets(now.standing, now.renewed)
            seen.append([one.name.rpartition("-1 ")[0] for one in there])
    soft, nearly = "budget-soft-project-susan", "budget-nearly-project-research"
    assert seen == [[], [nearly, soft], [nearly, soft], ["budget-project-research", soft]]


async def test_exhausted_budget_refuses_submissions_and_stops_no_job(
    tmp_path: Path,
) -> None:
    clock = FakeClock()  # 15 January 2027, 8:00 UTC
    async with pool_at(tmp_path, clock) as pool:
        runs = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
        await reached(pool, runs.id, State.RUNNING)
        clock.pass_s(5 * HOUR_S)
        with pytest.raises(Refused) as refused:
            await pool.jobs.submit(SUSAN, sleeper())
        assert refused.value.message == (
            "The project susan has used 10.0 of the 10 GPU-hours that it may use in a month: "
            "submit again from 1 February 2027 on, or ask an administrator for more."
        )
        assert refused.value.numbers == {
            "used_gpu_h": 10.0, "limit_gpu_h": 10.0, "renewed": "1 February 2027",
            "project": "susan",
        }  # fmt: skip
        await pool.housekeeping.look()
        assert pool.jobs.detail(SUSAN, runs.id).job.state is State.RUNNING
        await pool.jobs.submit(JOE, sleeper())
        clock.pass_s(17 * DAY_S)  # the running job uses hours of the new month, too
        await pool.housekeeping.look()
        assert used(pool, "susan") == pytest.approx(2 * 24 * (17 - 16 - 16 / 24) + 10, abs=0.1)


async def test_zero_budget_refers_to_administrator(tmp_path: Path) -> None:
    none = CONFIGURATION.replace("{soft: 4, hard: 10}", "{hard: 0}")
    async with pool_at(tmp_path, FakeClock(), none) as pool:
        with pytest.raises(Refused) as refused:
            await pool.jobs.submit(SUSAN, sleeper())
        assert refused.value.message == (
            "The project susan may use no GPU-hours: ask an administrator for some."
        )
        await pool.configuration.apply(ADMIN, CONFIGURATION)
        runs = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
        await reached(pool, runs.id, State.RUNNING)
        waits = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
        await pool.configuration.apply(ADMIN, none)
        found = await until_job(
            pool,
            waits.id,
            lambda now: now.reason is not None and now.reason.code == "budget-used-up",
        )
        assert found.reason is not None
        assert found.reason.text == "The project susan may use no GPU-hours."
        assert found.reason.remedy == "It may start when an administrator grants some."
        await pool.configuration.apply(ADMIN, CONFIGURATION)
        await pool.jobs.act(SUSAN, runs.id, "cancel")
        await reached(pool, waits.id, State.RUNNING)


async def test_parent_hours_include_children_and_survive_restart(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with pool_at(tmp_path, clock, CONFIGURATION + "retention: {ended_days: 1}\n") as pool:
        await run_for(pool, clock, 2)
        lease = await pool.benches.reserve(HUB, BENCH)
        clock.pass_s(1.5 * HOUR_S)
        await pool.benches.release(HUB, lease.id)
        clock.pass_s(2 * DAY_S)
        await pool.housekeeping.removal.clean()
        assert not list(pool.ledger.jobs())
        assert used(pool, "research") == used(pool, "susan") == 4.0
    with_user = CONFIGURATION + "gpu_hours: {users: {susan: {hard: 7}}}\n"
    async with pool_at(tmp_path, clock, with_user) as pool:
        assert used(pool, "research") == used(pool, "susan") == 4.0
        mine = pool.views.quota(SUSAN).gpu_hours
        assert mine is not None
        assert mine.used == 7.0  # 4 of jobs, 3 of the bench
        assert mine.text == (
            "7.0 of 7 GPU-hours this month, all used up; resets on 1 February 2027"
        )
        with pytest.raises(Refused, match=r"The user susan has used 7\.0 of the 7 GPU-hours"):
            await pool.jobs.submit(SUSAN, sleeper())
        # Benches stay available to their owner (R3).
        await pool.benches.reserve(HUB, BENCH)


async def test_exhausted_budget_holds_queued_jobs_and_resumes_begun_jobs(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    async with pool_at(tmp_path, clock) as pool:
        begun = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
        await reached(pool, begun.id, State.RUNNING)
        waits = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
        await decided(pool, waits.id)
        await pool.jobs.act(SUSAN, begun.id, "pause")
        await reached(pool, waits.id, State.RUNNING)  # first come, first served within the budget
        later = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
        clock.pass_s(3 * HOUR_S)
        await pool.housekeeping.look()
        found = await until_job(
            pool,
            later.id,
            lambda now: now.reason is not None and now.reason.code == "budget-used-up",
        )
        assert found.reason is not None
        assert found.reason.text == (
            "The project susan has used up its 10 GPU-hours of this month, and its new jobs "
            "start again when the next month begins."
        )
        assert found.reason.numbers["renewed"] == "1 February 2027"
        await pool.jobs.act(SUSAN, waits.id, "cancel")
        await pool.jobs.act(SUSAN, begun.id, "resume")
        await reached(pool, begun.id, State.RUNNING)
        await pool.jobs.act(SUSAN, begun.id, "cancel")
        raised = [Setting("projects.susan.gpu_hours.hard", 15)]
        answer = await pool.whatifs.ask(ADMIN, WhatIfQuestion(settings=raised))
        assert [(it.id, it.before.state, it.after.state) for it in answer.jobs] == [
            (later.id, "waits", "runs")
        ]
        assert answer.jobs[0].before.reason is not None
        assert answer.jobs[0].before.reason.code == "budget-used-up"
        await pool.configuration.set(ADMIN, ConfigurationEdit(raised, "a deadline"))
        await reached(pool, later.id, State.RUNNING)


async def test_soft_budget_lowers_weight_and_keeps_quota(tmp_path: Path) -> None:
    clock = FakeClock()
    async with pool_at(tmp_path, clock) as pool:
        await run_for(pool, clock, 4)  # 8 GPU-hours, with a soft budget of 4
        await pool.housekeeping.look()
        seen = snapshots.snapshot(pool.ledger, pool.observed.now, clock.now())
        (project,) = [it for it in seen.projects if it.name == "susan"]
        assert (project.quota, project.weight) == (2, 1.0)


def test_jobs_within_soft_budget_start_first() -> None:
    jobs = [
        JobFacts(JobId(name), ProjectName("a"), user=user, behind=user == "ann")
        for name, user in (("first", "ann"), ("second", "bob"))
    ]
    pool = Snapshot((Node(NodeName("n"), (GpuId("g"),)),), (Project(ProjectName("a"), quota=1),),
                    tuple(jobs))  # fmt: skip
    assert [command.job for command in decide(pool).commands] == ["second"]


# --------------------------------------------------------------------------- configuration


def test_gpu_hour_budgets_survive_conversion_to_cluster_objects() -> None:
    text = CONFIGURATION + (
        "gpu_hours: {time_zone: Europe/Zurich, soft: 50, users: {susan: {hard: 80.5}}}\n"
    )
    usual, mine = load(CONFIGURATION), load(text)
    assert compare(usual, mine) == [
        "Time zone of monthly budgets: UTC → Europe/Zurich.",
        "Default monthly budget of users: none → soft 50 GPU-hours.",
        "Monthly budget of user susan: none → hard 80.5 GPU-hours.",
    ]
    again = load(document(objects(text)).text)
    assert again.gpu_hours == mine.gpu_hours
    assert [it.gpu_hours for it in again.projects] == [it.gpu_hours for it in mine.projects]


@pytest.mark.parametrize(
    ("section", "wrong"),
    [
        ("{time_zone: Europe/Zurch}", r"time_zone is 'Europe/Zurch', which is not a time zone"),
        ("{soft: 5, hard: 3}", r"soft is 5 GPU-hours, more than `hard` \(3\)"),
        ("{users: {ann: {hart: 3}}}", r"users\.ann\.hart is not a known key; did you mean `hard`"),
    ],
)
def test_wrong_budget_is_refused_with_its_key(section: str, wrong: str) -> None:
    with pytest.raises(InvalidInput, match=wrong):
        load(f"version: 1\ngpu_hours: {section}\n")
