"""Use above quota is counted, decays with the half-life and survives restarts (R7)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract import State
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.ledger.usage_decay import UsageDecay, accrued, faded, rates
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened, reached, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, devices

DAY_S = 86_400.0
TIMES = st.floats(0, 30 * DAY_S)
HALF_LIVES = st.floats(60, 60 * DAY_S)
GPUS = st.floats(0, 10_000)

CONFIGURATION = """
version: 1
projects:
  - {{name: research, quota: 2}}
  - {{name: susan, parent: research, quota: 1, members: [susan, sue]}}
  - {{name: joe, parent: research, quota: 1, members: [joe]}}
policy: {{usage_half_life_h: 1, usage_weight: {weight}}}
"""


def configuration(weight: float = 0.0) -> Configuration:
    return story(CONFIGURATION.format(weight=weight))


# --------------------------------------------------------------------------- arithmetic


@given(GPUS, TIMES, TIMES, HALF_LIVES)
def test_accrued_use_is_independent_of_splitting(
    gpus: float, first: float, second: float, half_life_s: float
) -> None:
    whole = accrued(gpus, first + second, half_life_s)
    parts = faded(accrued(gpus, first, half_life_s), second, half_life_s)
    parts += accrued(gpus, second, half_life_s)
    assert parts == pytest.approx(whole, rel=1e-9, abs=1e-6)


@given(GPUS, HALF_LIVES)
def test_past_use_halves_after_one_half_life(gpu_s: float, half_life_s: float) -> None:
    assert faded(gpu_s, half_life_s, half_life_s) == pytest.approx(gpu_s / 2)


@given(GPUS, TIMES, HALF_LIVES)
def test_accrued_use_is_bounded(gpus: float, seconds: float, half_life_s: float) -> None:
    found = accrued(gpus, seconds, half_life_s)
    assert 0 <= found <= gpus * seconds * (1 + 1e-9) + 1e-9
    assert found <= gpus * half_life_s / 0.6931 + 1e-9


@given(st.lists(st.tuples(st.floats(0, DAY_S), st.integers(0, 50)), max_size=20), HALF_LIVES)
def test_past_use_is_independent_of_sampling(
    steps: list[tuple[float, int]], half_life_s: float
) -> None:
    often, seldom = UsageDecay(), UsageDecay()
    now = 0.0
    for seconds, gpus in steps:
        use = {("p", ""): float(gpus)} if gpus else {}
        often.sample(now, use, half_life_s)
        seldom.sample(now, use, half_life_s)
        often.sample(now + seconds / 3, use, half_life_s)
        now += seconds
    often.sample(now, {}, half_life_s)
    seldom.sample(now, {}, half_life_s)
    # Each sample discards less than one GPU second.
    assert often.of("p") == pytest.approx(seldom.of("p"), rel=1e-9, abs=2.0 * len(steps) + 1)


# --------------------------------------------------------------------------- in a pool


async def over_quota(pool: Pool) -> None:
    """Let susan hold four GPUs: one is guaranteed to her project, two to all of research."""
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=4))
    await reached(pool, job.id, State.RUNNING)


def a_pool(folder: Path, clock: FakeClock, weight: float = 0.0) -> Pool:
    runtime = ScriptedRuntime(devices(6))
    return make_pool(folder, configuration=configuration(weight), runtime=runtime, clock=clock)


async def test_past_use_counts_gpus_above_quota_per_level(tmp_path: Path) -> None:
    clock = FakeClock()
    async with opened(a_pool(tmp_path, clock)) as pool:
        await over_quota(pool)
        engine = pool
        assert rates(engine.ledger.counters, configuration()) == {
            ("susan", ""): 3.0,
            ("susan", "susan"): 3.0,
            ("research", ""): 2.0,
        }
        engine.housekeeping.count_use()
        clock.pass_s(600)
        engine.housekeeping.count_use()
        found = pool.figures.read().past_use_gpu_s
        assert found["susan"] == pytest.approx(accrued(3, 600, 3600))
        assert found["research"] == pytest.approx(accrued(2, 600, 3600))
        assert "joe" not in found


async def test_past_use_decays_while_service_is_stopped(tmp_path: Path) -> None:
    clock = FakeClock()
    async with opened(a_pool(tmp_path, clock)) as pool:
        await over_quota(pool)
        pool.housekeeping.count_use()
        clock.pass_s(3600)
    used = accrued(3, 3600, 3600)
    clock.pass_s(7200)
    async with opened(a_pool(tmp_path, clock)) as pool:
        assert pool.figures.read().past_use_gpu_s["susan"] == pytest.approx(used / 4)


@pytest.mark.parametrize("weight", [0.0, 1.0])
async def test_snapshot_includes_past_use_only_with_weight(tmp_path: Path, weight: float) -> None:
    clock = FakeClock()
    async with opened(a_pool(tmp_path, clock, weight)) as pool:
        await over_quota(pool)
        engine = pool
        engine.housekeeping.count_use()
        clock.pass_s(3600)
        await engine.housekeeping.look()
        seen = snapshots.snapshot(engine.ledger, engine.observed.now, clock.now())
        used = {str(project.name): project.used_gpu_s for project in seen.projects}
        expected = round(accrued(3, 3600, 3600)) if weight else 0
        assert used["susan"] == expected
        assert [(it.name, it.used_gpu_s) for it in seen.users] == [("susan", expected)] * bool(
            weight
        )
        assert engine.state_cache.take_input().spec.projects == seen.projects
