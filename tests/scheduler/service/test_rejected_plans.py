"""Commands of a faulty core that break a rule are rejected; the pool continues, and saves the
case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchpool_scheduler.contract import State
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.core.model import JobId, Plan, Preempt, Start
from benchpool_scheduler.core.plan import decide_on
from benchpool_scheduler.service import Pool
from benchpool_scheduler.simulation.cases import ABILITIES, load
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, devices

pytestmark = pytest.mark.expected_errors("would have broken a rule")


@dataclass
class Lying:
    """Core that starts one job on the GPUs of another job."""

    liar: JobId | None = None
    onto: JobId | None = None

    def __call__(self, state: ClusterState, now_s: float) -> Plan:
        plan = decide_on(state, now_s)
        if self.liar is None or self.onto is None or self.liar not in state.jobs:
            return plan
        others = (command for command in plan.commands if command.job != self.liar)
        lie = Start(self.liar, state.jobs[self.onto].job.held)
        return replace(plan, commands=(*others, lie))


def problems(pool: Pool) -> str:
    return " ".join(pool.views.status(ADMIN).health.problems)


def state_of(pool: Pool, job: str) -> JobState | None:
    record = pool.ledger.job(job)
    return None if record is None else record.state


async def test_start_on_held_gpu_is_rejected(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime)) as pool:
        first = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
        await reached(pool, first.id, State.RUNNING)
        lying = Lying(onto=JobId(first.id))
        pool.state_cache.decider = lying
        async with pool.ledger.lock:
            second = await pool.jobs.submit(JOE, sleeper(gpus=2))
            lying.liar = JobId(second.id)
        shown = await until_job(
            pool, second.id, lambda now: now.reason is not None and now.reason.code == "set-aside"
        )
        assert shown.state is State.QUEUED
        assert shown.reason is not None
        assert "would break a rule of the pool (R1)" in shown.reason.text
        assert state_of(pool, first.id) is JobState.RUNNING

        third = await pool.jobs.submit(JOE, sleeper(gpus=2))
        await reached(pool, third.id, State.RUNNING)
        held = [gpu for launch in runtime.launched.values() for gpu in launch.gpus]
        assert len(held) == len(set(held)) == 4


async def test_rejected_plan_is_reported_with_saved_case(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        first = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
        await reached(pool, first.id, State.RUNNING)
        lying = Lying(onto=JobId(first.id))
        pool.state_cache.decider = lying
        async with pool.ledger.lock:
            second = await pool.jobs.submit(JOE, sleeper(gpus=2))
            lying.liar = JobId(second.id)
        await until_job(
            pool, second.id, lambda now: now.reason is not None and now.reason.code == "set-aside"
        )
        files = sorted((tmp_path / "scheduler" / "doubtful-plans").iterdir())
        assert len(files) == 1, "the same pool is written down once"
        assert str(files[0]) in problems(pool)
        assert "R1: GPU" in problems(pool)
        (case,) = load(files[0], ABILITIES)
        assert case.snapshot is not None
        assert {job.id for job in case.snapshot.jobs} == {first.id, second.id}

        pool.state_cache.decider = decide_on
        await pool.passes.make()
        assert problems(pool) == ""
        await reached(pool, second.id, State.RUNNING)


async def test_rule_breaking_preemption_keeps_gang_running(tmp_path: Path) -> None:
    """A gang keeps all of its workers if a preemption would leave fewer than its minimum."""
    async with opened(make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))) as pool:
        gang = await pool.jobs.submit(SUSAN, sleeper(gpus=1, workers=3))
        await reached(pool, gang.id, State.RUNNING)

        def tearing(state: ClusterState, now_s: float) -> Plan:
            plan = decide_on(state, now_s)
            held = state.jobs[JobId(gang.id)].job.held
            torn = Preempt(JobId(gang.id), held[:1], None, "R3", 0.0)
            return replace(plan, commands=(*plan.commands, torn))

        pool.state_cache.decider = tearing
        await pool.passes.make()
        assert "R10" in problems(pool)
        assert "1 command of it was not carried out" in problems(pool)
        assert state_of(pool, gang.id) is JobState.RUNNING
