"""Estimated starts of waiting jobs, compared with their real starts (R22)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.forecast.forecast import Basis, BasisKind, Estimate, forecast
from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Policy,
    Project,
    ProjectName,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after
from benchpool_support.asking import asking
from benchpool_support.examples import examples
from benchpool_support.snapshots import busy_snapshots, snapshots

some = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
pools = st.one_of(snapshots(), busy_snapshots())
LEARNED = Basis(BasisKind.LEARNED, "pool", 0)
VISION, SPEECH = ProjectName("vision"), ProjectName("speech")


def known(seconds: float) -> Expectation:
    return Expectation(seconds, seconds, seconds)


def drawn_run_times(pool: Snapshot, seed: int) -> dict[JobId, Expectation]:
    """Give every job a run time longer than its elapsed time; all different."""
    return {
        job.id: known(job.ran_s + 10 + (seed * 7919 + number * 104_729) % 5003)
        for number, job in enumerate(pool.jobs)
    }


def settled(pool: Snapshot) -> Snapshot:
    """Return a pool without leaving jobs, in which a pause loses nothing."""
    jobs = [
        replace(job, since_checkpoint_s=0.0 if job.held else None, ran_s=job.ran_s * bool(job.held))
        for job in pool.jobs
        if job.activity is not Activity.TERMINATING
    ]
    policy = replace(
        pool.policy,
        min_runtime_s=0.0,
        preemptions_per_hour=10**6,
        preemptions_per_day=10**6,
        restart_s=0.0,
    )
    return replace(pool, jobs=tuple(jobs), policy=policy)


def real_starts(pool: Snapshot, ends: dict[JobId, Expectation]) -> dict[JobId, float]:
    """Play the pool with the simulator's steps; return the first start of each waiting job."""
    now, starts = 0.0, dict[JobId, float]()
    left = {job.id: ends[job.id].likely_s - job.ran_s for job in pool.jobs}
    while True:
        plan = decide(pool)
        queued = {job.id for job in pool.jobs if job.activity is Activity.QUEUED}
        for command in plan.commands:
            if isinstance(command, Start) and command.job in queued:
                starts.setdefault(command.job, now)
        pool = after(pool, plan)
        running = [job.id for job in pool.jobs if job.activity is Activity.RUNNING]
        if not running:
            return starts
        # A job that becomes long-running is preempted at that moment, although no job ends.
        turns = [plan.wake_s] if plan.wake_s is not None and plan.wake_s > 0 else []
        step = min([*turns, *(left[job] for job in running)])
        now += step
        for job in running:
            left[job] -= step
        gone = {job for job in running if left[job] <= 1e-6}
        stay = [job for job in pool.jobs if job.id not in gone]
        older = [
            replace(job, ran_s=job.ran_s + step, since_checkpoint_s=0.0)
            if job.held
            else replace(job, waits_s=job.waits_s + step)
            for job in stay
        ]
        pool = replace(pool, jobs=tuple(older))


@some
@given(pools, st.integers(0, 1000))
def test_starts_match_forecast_when_jobs_end_as_expected(pool: Snapshot, seed: int) -> None:
    pool = settled(pool)
    ends = drawn_run_times(pool, seed)
    really = real_starts(pool, ends)
    found = forecast(pool, ends)
    assert set(found) <= set(really)
    waiting = [job.id for job in pool.jobs if job.activity is Activity.QUEUED]
    for job in waiting:
        if job in really:
            assert found[job].likely_s is not None
            assert abs((found[job].likely_s or 0.0) - really[job]) < 1e-3, (job, found, really)


@some
@given(pools, st.integers(0, 1000))
def test_ranges_are_ordered_and_contain_likely_start(pool: Snapshot, seed: int) -> None:
    ends = {
        job: Expectation(it.likely_s, it.likely_s * 1.5, it.likely_s * 4)
        for job, it in drawn_run_times(pool, seed).items()
    }
    for estimate in forecast(pool, ends).values():
        assert estimate.earliest_s is not None
        assert estimate.earliest_s >= 0
        bounds = [estimate.earliest_s, estimate.likely_s, estimate.latest_s]
        given_bounds = [bound for bound in bounds if bound is not None]
        assert given_bounds == sorted(given_bounds)


@some
@given(pools)
def test_without_known_ends_only_immediate_start_is_estimated(pool: Snapshot) -> None:
    ageless = replace(pool.policy, long_run_s=0.0)  # otherwise time alone frees GPUs
    pool = settled(replace(pool, policy=ageless))
    now = {c.job for c in decide(pool).commands if isinstance(c, Start)}
    found = forecast(pool, {})
    assert {job for job, it in found.items() if it.earliest_s == 0} == set(found)
    assert set(found) <= now


# --------------------------------------------------------------------------- one full machine


def box(gpus: int, *jobs: JobFacts, quota: int = 8, policy: Policy | None = None) -> Snapshot:
    return Snapshot(
        nodes=(Node(NodeName("box"), tuple(GpuId(f"g{i}") for i in range(gpus))),),
        projects=(Project(VISION, quota=quota), Project(SPEECH, quota=quota)),
        jobs=jobs,
        policy=policy or Policy(),
    )


def running(name: str, *gpus: int, ran_s: float = 0.0, **facts: object) -> JobFacts:
    held = (Worker(NodeName("box"), tuple(GpuId(f"g{i}") for i in gpus)),)
    asked = asking({"activity": Activity.RUNNING, "held": held} | facts, gpus=len(gpus))
    return JobFacts(JobId(name), VISION, ran_s=ran_s, since_checkpoint_s=0.0, **asked)


def waiting(name: str, gpus: int = 1, **facts: object) -> JobFacts:
    return JobFacts(JobId(name), VISION, **asking(facts, gpus=gpus))


def estimate_of(pool: Snapshot, name: str, ends: dict[str, Expectation]) -> Estimate | None:
    return forecast(pool, {JobId(job): it for job, it in ends.items()}).get(JobId(name))


def test_time_limit_is_latest_end_without_history() -> None:
    pool = box(1, running("a", 0, ran_s=200.0, time_limit_s=1000), waiting("b"))
    found = estimate_of(pool, "b", {})
    assert found is not None
    assert found.earliest_s == pytest.approx(80)
    assert (found.likely_s, found.latest_s) == (400, 800)
    assert (found.waits_for, found.basis) == ("a", Basis(BasisKind.TIME_LIMIT))


def test_time_limit_bounds_learned_run_time() -> None:
    pool = box(1, running("a", 0, ran_s=200.0, time_limit_s=1000), waiting("b"))
    found = estimate_of(pool, "b", {"a": Expectation(300.0, 900.0, 5000.0)})
    assert found is not None
    assert (found.earliest_s, found.likely_s, found.latest_s) == (0.0, 700.0, 800.0)


def test_gang_waits_for_last_needed_gpu() -> None:
    pool = box(3, running("a", 0), running("b", 1), running("c", 2), waiting("d", 2))
    ends = {"a": known(500), "b": known(100), "c": known(900)}
    assert estimate_of(pool, "d", ends) == Estimate(500, 500, 500, JobId("a"), LEARNED)


def test_job_behind_another_waits_for_both() -> None:
    pool = box(1, running("a", 0), waiting("b"), waiting("c"))
    ends = {"a": known(100), "b": known(50)}
    found = forecast(pool, {JobId(job): it for job, it in ends.items()})
    assert found[JobId("b")].likely_s == 100
    assert found[JobId("c")].likely_s == 150
    assert found[JobId("c")].waits_for == "b"


def test_unknown_end_leaves_late_bound_open() -> None:
    pool = box(2, running("a", 0), running("b", 1), waiting("c"), waiting("d"))
    found = forecast(pool, {JobId("a"): Expectation(10, 20, 30)})
    assert list(found) == ["c"]
    estimate = found[JobId("c")]
    assert estimate.earliest_s == pytest.approx(10 * 0.5**0.6)
    assert (estimate.likely_s, estimate.latest_s, estimate.waits_for) == (20, 30, "a")


def test_preempted_job_resumes_later_with_kept_progress() -> None:
    victim = replace(running("a", 0, ran_s=400.0), project=SPEECH, since_checkpoint_s=100.0)
    pool = box(1, victim, waiting("b"), quota=1, policy=Policy(restart_s=60.0))
    pool = replace(pool, projects=(Project(VISION, quota=1), Project(SPEECH, quota=0)))
    asked = replace(pool, jobs=(*pool.jobs, waiting("c")))
    ends = {JobId("a"): known(1000), JobId("b"): known(50), JobId("c"): known(50)}
    found = forecast(asked, ends)
    # b reclaims the GPU now, c takes it after b, and only then a resumes.
    assert (found[JobId("b")].likely_s, found[JobId("b")].latest_s) == (0, 30)
    assert found[JobId("c")].likely_s == 50


def test_protected_victim_is_awaited_only_until_protection_ends() -> None:
    victim = replace(running("a", 0, ran_s=10.0), project=SPEECH)
    pool = replace(
        box(1, victim, waiting("b"), policy=Policy(min_runtime_s=60.0)),
        projects=(Project(VISION, quota=1), Project(SPEECH, quota=0)),
    )
    found = estimate_of(pool, "b", {"a": known(1000)})
    assert found is not None
    assert found.likely_s == 50


def test_resuming_job_follows_earlier_queued_jobs() -> None:
    leaving = replace(running("a", 0), activity=Activity.TERMINATING)
    pool = box(1, leaving, waiting("b"), waiting("c"))
    ends = {JobId("a"): known(500), JobId("b"): known(100)}
    gone = forecast(pool, ends)
    back = forecast(pool, ends, resumes=[JobId("a")])
    # b was promised the GPU; a is older and resumes before c.
    assert gone[JobId("b")].latest_s == back[JobId("b")].latest_s == 30
    assert gone[JobId("c")].likely_s == 100
    assert back[JobId("c")].likely_s == 100 + 500 + 60


def test_forecast_passes_and_horizon_are_limited() -> None:
    jobs = [running(f"r{i}", i) for i in range(8)]
    pool = box(8, *jobs, waiting("all", 8))
    ends = {job.id: known(100.0 * (i + 1)) for i, job in enumerate(jobs)}
    assert forecast(pool, ends)[JobId("all")].likely_s == 800
    assert forecast(pool, ends, most_passes=1) == {}
    assert 400 <= (forecast(pool, ends, most_passes=6)[JobId("all")].likely_s or 0) <= 800
    assert forecast(pool, ends, horizon_s=799.0) == {}


def test_interrupted_forecast_returns_known_starts() -> None:
    pool = box(1, running("a", 0), waiting("b"), waiting("c"))
    ends = {JobId("a"): known(100), JobId("b"): known(50)}
    asked = iter([True, True, False, False, False])
    found = forecast(pool, ends, should_continue=lambda: next(asked))
    assert found == {JobId("b"): Estimate(100, 100, None, JobId("a"), LEARNED)}


def test_many_ends_share_passes_and_estimate_stays_close() -> None:
    jobs = [running(f"r{i}", i) for i in range(400)]
    pool = box(400, *jobs, waiting("all", 400), quota=400)
    ends = {job.id: known(100.0 + 3 * i) for i, job in enumerate(jobs)}
    found = forecast(pool, ends)[JobId("all")]
    last = 100.0 + 3 * 399
    assert found.likely_s is not None
    assert last * 0.9 <= found.likely_s <= last * 1.06
