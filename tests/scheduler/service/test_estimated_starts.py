"""Estimated starts of queued jobs, and the run times they are learned from (R14, R22)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchpool_scheduler.contract import Job, Reason, State
from benchpool_scheduler.core.model import JobId
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.cluster_state.snapshots import by_rank, snapshot
from benchpool_support.lab import Lab, estimated
from benchpool_support.pools import (
    ADMIN,
    JOE,
    SUSAN,
    opened,
    reached,
    sleeper,
    until_job,
)


def seconds(job: Job, now: float) -> list[float | None]:
    """Return the three bounds of the estimated start, in seconds from now."""
    start = job.estimated_start
    assert start is not None
    bounds = (start.earliest, start.likely, start.latest)
    return [None if at is None else round(at.timestamp() - now, 3) for at in bounds]


async def test_time_limit_bounds_estimated_start(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        await lab.start(SUSAN, sleeper(time_limit_s=600))
        second = await estimated(pool, (await pool.jobs.submit(SUSAN, sleeper())).id)
        assert seconds(second, lab.clock.now()) == [0, 300, 600]
        assert pool.jobs.why(SUSAN, second.id).estimated_start == second.estimated_start
        assert basis(second) == "by the time limit of the job it waits for"
        # The range moves with time, and an earliest start in the past becomes now.
        lab.clock.pass_s(200)
        later = pool.jobs.detail(SUSAN, second.id).job
        assert seconds(later, lab.clock.now()) == [0, 100, 400]


def basis(job: Job) -> str | None:
    assert job.estimated_start is not None
    return job.estimated_start.basis


async def test_expired_estimate_is_hidden(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        await lab.start(SUSAN, sleeper(time_limit_s=600))
        second = await estimated(pool, (await pool.jobs.submit(SUSAN, sleeper())).id)
        lab.clock.pass_s(601)
        # The job did not start within its 10 min: "any moment" would be a guess.
        assert pool.jobs.detail(SUSAN, second.id).job.estimated_start is None


async def test_forecast_skips_removed_job(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        ids = [(await pool.jobs.submit(user, sleeper())).id for user in (SUSAN, JOE)]
        seen = snapshot(pool.ledger, pool.observed.now, lab.clock.now()).jobs
        gone = replace(seen[0], id=JobId("a" * 26))
        assert [it.id for it in by_rank(pool.ledger, [*seen[::-1], gone])] == ids


async def test_estimate_accuracy_is_counted_and_survives_restart(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        first = await lab.start(SUSAN, sleeper(time_limit_s=600))
        second = await estimated(pool, (await pool.jobs.submit(SUSAN, sleeper())).id)
        third = await pool.jobs.submit(SUSAN, sleeper())
        lab.clock.pass_s(120)
        lab.end(first)
        await lab.begun(second.id)
        await pool.jobs.act(SUSAN, third.id, "cancel")
        await reached(pool, third.id, State.CANCELLED)
        found = pool.estimates.accuracy().horizons
        assert [(it.up_to_s, it.starts, it.inside) for it in found] == [
            (600, 1, 1),
            (3600, 0, 0),
            (21600, 0, 0),
            (None, 0, 0),
        ]
    lab.pool = lab.new()
    async with opened(lab.pool) as pool:
        assert pool.estimates.accuracy().horizons == found


async def test_estimate_is_absent_without_known_end(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        await lab.start(SUSAN, sleeper())
        second = await pool.jobs.submit(SUSAN, sleeper())
        await pool.estimates.make()
        assert pool.jobs.why(SUSAN, second.id).estimated_start is None


async def test_learned_run_times_survive_restart(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        for number in range(4):
            await lab.run(SUSAN, sleeper(name=f"train-{number}"), 100.0)
        await lab.start(SUSAN, sleeper(name="train-9"))
        lab.clock.pass_s(40)
        waiting = await pool.jobs.submit(SUSAN, sleeper(name="other"))
        estimate = await estimated(pool, waiting.id)
        assert seconds(estimate, lab.clock.now()) == [0, 60, 180]
        assert basis(estimate) == "learned from 4 runs of its user"
        pool.estimates.took_s = 0.0  # a busy machine may be too slow for a forecast
        preview = await pool.jobs.preview(SUSAN, sleeper(name="other"))
        assert preview.estimated_start is not None
        assert preview.estimated_start.basis == "learned from 4 runs of yours"
    lab.clock.pass_s(20)
    lab.pool = lab.new()
    async with opened(lab.pool) as pool:
        again = await estimated(pool, waiting.id)
        assert seconds(again, lab.clock.now()) == [0, 40, 140]


async def test_remedy_names_blocking_job_only_to_permitted_users(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        first = await lab.start(SUSAN, sleeper(time_limit_s=2400, name="secret-plan"))
        second = await estimated(pool, (await pool.jobs.submit(JOE, sleeper())).id)
        why = pool.jobs.why(JOE, second.id)
        assert why.reason is not None
        assert why.reason.remedy.endswith("It waits for another job.")
        assert why.would_start_with == why.reason.remedy
        assert first.id[:8] not in why.reason.remedy
        remedy = f"It waits for job {first.id[:8]} of project vision."
        of_admin = pool.jobs.why(ADMIN, second.id).reason
        assert of_admin is not None
        assert of_admin.remedy.endswith(remedy)
        assert "susan" not in why.reason.remedy
        assert "secret" not in why.reason.remedy


async def test_reason_names_reserved_job_only_to_permitted_users(tmp_path: Path) -> None:
    lab = Lab(tmp_path, gpus=2)
    async with opened(lab.pool) as pool:
        await lab.start(SUSAN, sleeper(time_limit_s=2400))
        first = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
        second = await pool.jobs.submit(JOE, sleeper())
        await until_job(pool, second.id, lambda now: code_of(now) == "reserved-for-others")
        of_admin = reason_of(pool, ADMIN, second.id)
        assert of_admin.numbers["reserved_for"] == first.id
        assert f"kept for job {first.id[:8]} of project vision" in of_admin.text
        of_joe = reason_of(pool, JOE, second.id)
        assert "kept for another job, which goes first" in of_joe.text
        assert "reserved_for" not in of_joe.numbers
        assert pool.jobs.detail(JOE, second.id).job.reason == of_joe


def code_of(job: Job) -> str:
    return "" if job.reason is None else job.reason.code


def reason_of(pool: Pool, caller: Caller, job: str) -> Reason:
    found = pool.jobs.why(caller, job).reason
    assert found is not None
    return found


async def test_preview_shows_estimated_start(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        now = (await pool.jobs.preview(SUSAN, sleeper())).estimated_start
        assert now is not None
        assert now.latest is not None
        assert now.latest.timestamp() == lab.clock.now()
        await lab.start(SUSAN, sleeper(time_limit_s=600))
        pool.estimates.took_s = 0.0  # a busy machine may be too slow for a forecast
        waits = await pool.jobs.preview(SUSAN, sleeper())
        assert waits.starts == "waits"
        assert waits.estimated_start is not None
        assert waits.estimated_start.latest is not None
        assert waits.estimated_start.latest.timestamp() == lab.clock.now() + 600
        pool.estimates.took_s = 0.0
        short = await pool.jobs.preview(SUSAN, sleeper(time_limit_s=60))
        assert short.estimated_start is not None


async def test_paused_attempt_counts_as_done(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        for number in range(4):
            await lab.run(JOE, sleeper(name=f"train-{number}"), 100.0)
        of_joe = await lab.start(JOE, sleeper(name="train-7"))
        lab.clock.pass_s(70)
        of_susan = await pool.jobs.submit(SUSAN, sleeper(time_limit_s=600))
        await reached(pool, of_joe.id, State.PAUSING)
        lab.end(of_joe, exit_code=1)
        await lab.begun(of_susan.id)
        facts = pool.ledger.runtime_estimator.facts(
            pool.ledger.job(of_joe.id),  # type: ignore[arg-type]
            pool.ledger.attempts(of_joe.id),
        )
        assert facts == (100.0, 70.0)


async def test_estimate_grows_for_overrunning_job(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        for number, run_s in enumerate([100, 100, 100, 100, 100, 900, 900, 900, 900]):
            await lab.run(SUSAN, sleeper(name=f"train-{number}"), float(run_s))
        running = await lab.start(SUSAN, sleeper(name="train-9"))
        waiting = await pool.jobs.submit(SUSAN, sleeper())
        assert await expected_of(pool, running.id) == 100
        lab.clock.pass_s(150)
        await pool.estimates.make()
        assert await expected_of(pool, running.id) == 900
        start = pool.jobs.why(SUSAN, waiting.id).estimated_start
        assert start is not None
        assert start.likely is not None
        assert start.likely.timestamp() - lab.clock.now() == 750


async def expected_of(pool: Pool, job: str) -> float | None:
    """Return the run time that the newest pass expected of a job, in seconds."""
    engine = pool
    await engine.passes.make()
    async with engine.ledger.lock:
        found = await engine.state_cache.snapshot(engine.observed.settings.clock.now())
    assert found is not None
    return next(it.expected_run_s for it in found.jobs if it.id == job)
