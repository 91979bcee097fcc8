"""Reservation of GPUs for a blocked large job, and their use in the meantime (R14)."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Plan,
    Project,
    ProjectName,
    ReasonCode,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.core.plan import decide, decide_on
from benchpool_scheduler.simulation.passes import after
from benchpool_support.asking import asking
from benchpool_support.examples import examples
from benchpool_support.snapshots import busy_snapshots, snapshots

many = settings(max_examples=examples(200), suppress_health_check=list(HealthCheck))
some = settings(max_examples=examples(80), suppress_health_check=list(HealthCheck))
VISION = ProjectName("vision")
any_pools = st.one_of(
    snapshots(), busy_snapshots(), snapshots(elastic=True), busy_snapshots(elastic=True)
)


@st.composite
def one_project(draw: st.DrawFn) -> Snapshot:
    """Draw an empty pool with one project, so that age decides; every job's end is known."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    nodes = tuple(
        Node(NodeName(f"n{i}"), tuple(GpuId(f"n{i}/{g}") for g in range(size)))
        for i, size in enumerate(sizes)
    )
    jobs = tuple(
        JobFacts(
            JobId(f"j{number}"),
            VISION,
            spec=JobSpec(
                gpus=draw(st.integers(1, 4)),
                workers=(workers := draw(st.sampled_from([1, 1, 1, 2, 3]))),
                min_workers=workers,
                time_limit_s=draw(st.integers(1, 50)),
            ),
        )
        for number in range(draw(st.integers(2, 9)))
    )
    return Snapshot(nodes, (Project(VISION, quota=None),), jobs)


@st.composite
def with_known_ends(draw: st.DrawFn) -> Snapshot:
    """Draw any pool, and give some jobs a time limit and other jobs an expected run time."""
    pool = draw(any_pools)
    jobs = [
        replace(
            job,
            spec=job.spec.changed(
                time_limit_s=draw(
                    st.sampled_from([None, math.ceil(job.ran_s) + 60, math.ceil(job.ran_s) + 600])
                )
            ),
            expected_run_s=draw(st.sampled_from([None, job.ran_s + 90.0, 10.0])),
        )
        for job in pool.jobs
    ]
    return replace(pool, jobs=tuple(jobs))


def started(plan: Plan) -> list[JobId]:
    return [command.job for command in plan.commands if isinstance(command, Start)]


def play(pool: Snapshot) -> dict[JobId, float]:
    """Let every job run for exactly its time limit; return the start of each job."""
    starts: dict[JobId, float] = {}
    now = 0.0
    while True:
        plan = decide(replace(pool, now_s=now))
        starts.update(dict.fromkeys(started(plan), now))
        pool = after(pool, plan)
        jobs = [
            replace(job, as_of_s=starts[job.id], ran_s=0.0) if job.held else job
            for job in pool.jobs
        ]
        ends = {job.id: starts[job.id] + (job.spec.time_limit_s or 0.0) for job in jobs if job.held}
        if not ends:
            return starts
        now = min(ends.values())
        pool = replace(pool, jobs=tuple(job for job in jobs if ends.get(job.id, now + 1) > now))


@many
@given(one_project())
def test_later_jobs_never_delay_first_blocked_job(pool: Snapshot) -> None:
    at_once = started(decide(pool))
    blocked = [
        number
        for number, job in enumerate(pool.jobs)
        if job.id not in at_once and job.spec.gpus * job.spec.workers > 1
    ]
    if not blocked:
        return
    first = blocked[0]
    alone = replace(pool, jobs=pool.jobs[: first + 1])
    name = pool.jobs[first].id
    without, with_others = play(alone), play(pool)
    assert (name in without) == (name in with_others)
    if name in without:
        assert with_others[name] <= without[name]


@many
@given(one_project())
def test_held_back_job_would_delay_reserved_job(pool: Snapshot) -> None:
    # Work conservation except for R14: a held-back job starts without the reserved job.
    plan = decide(pool)
    held_back = {
        job: reason
        for job, reason in plan.reasons.items()
        if reason.code is ReasonCode.RESERVED_FOR_OTHERS and reason.other is not None
    }
    for job, reason in held_back.items():
        assert reason.other is not None
        owner = reason.other.job
        rest = replace(after(pool, plan), jobs=())
        others = [it for it in after(pool, plan).jobs if it.id != owner]
        alone = [it for it in others if it.held or it.id == job]
        assert job in started(decide(replace(rest, jobs=tuple(alone))))


@many
@given(one_project())
def test_held_back_job_starts_with_advised_time_limit(pool: Snapshot) -> None:
    plan = decide(pool)
    for name, reason in plan.reasons.items():
        limit = reason.numbers.get("time_limit_s")
        if not isinstance(limit, float) or limit < 1:
            continue
        shorter = [
            replace(job, spec=job.spec.changed(time_limit_s=int(limit))) if job.id == name else job
            for job in after(pool, plan).jobs
        ]
        assert name in started(decide(replace(pool, jobs=tuple(shorter))))


@some
@given(with_known_ends())
def test_pass_leaves_cluster_state_unchanged(pool: Snapshot) -> None:
    state = ClusterState.of(pool)
    first = decide_on(state, pool.now_s)
    assert decide_on(state, pool.now_s) == first == decide(pool)


@some
@given(with_known_ends())
def test_second_pass_with_reservations_does_nothing(pool: Snapshot) -> None:
    done = after(pool, decide(pool))
    for _ in range(3):
        again = after(done, decide(done))
        if again == done:
            break
        done = again
    assert after(done, decide(done)) == done


@some
@given(with_known_ends())
def test_every_waiting_job_has_exactly_one_reason(pool: Snapshot) -> None:
    plan = decide(pool)
    now = {c.job for c in plan.commands if isinstance(c, Start) and not c.after}
    waiting = {job.id for job in pool.jobs if job.activity is Activity.QUEUED} - now
    assert set(plan.reasons) == waiting


@some
@given(any_pools)
def test_no_reservation_without_known_ends(pool: Snapshot) -> None:
    plan = decide(pool)
    assert all(reason.other is None for reason in plan.reasons.values())
    assert not ClusterState.of(pool).endings


# --------------------------------------------------------------------------- one machine


def box(*jobs: JobFacts, gpus: int = 4) -> Snapshot:
    return Snapshot(
        nodes=(Node(NodeName("box"), tuple(GpuId(f"g{i}") for i in range(gpus))),),
        projects=(Project(VISION, quota=None),),
        jobs=jobs,
    )


def running(name: str, *gpus: int, **facts: object) -> JobFacts:
    held = (Worker(NodeName("box"), tuple(GpuId(f"g{i}") for i in gpus)),)
    asked = asking({"activity": Activity.RUNNING, "held": held} | facts, gpus=len(gpus))
    return JobFacts(JobId(name), VISION, **asked)


def waiting(name: str, gpus: int = 1, **facts: object) -> JobFacts:
    return JobFacts(JobId(name), VISION, **asking(facts, gpus=gpus))


def test_learned_run_times_count_without_limit() -> None:
    pool = box(
        running("a", 0, 1, expected_run_s=1000.0, done_s=300.0, ran_s=100.0),
        waiting("large", 4),
        waiting("long", expected_run_s=601.0),
        waiting("short", expected_run_s=700.0, done_s=101.0),
    )
    assert started(decide(pool)) == ["short"]


def test_overrunning_job_has_no_known_end() -> None:
    pool = box(
        running("a", 0, 1, expected_run_s=100.0, ran_s=101.0), waiting("large", 4), waiting("b")
    )
    assert started(decide(pool)) == ["b"]


def test_reasons_name_reserved_job_time_and_remedy() -> None:
    pool = box(
        running("a", 0, 1, time_limit_s=3000, ran_s=600.0),
        waiting("a-very-long-name", 4),
        waiting("b"),
    )
    plan = decide(pool)
    held_back = plan.reasons[JobId("b")]
    assert held_back.code is ReasonCode.RESERVED_FOR_OTHERS
    assert held_back.text == (
        "waits for 1 GPU: 2 of 4 are free, and kept for another job, which goes first"
    )
    assert held_back.other is not None
    assert held_back.other.job == "a-very-long-name"
    assert held_back.other.text == held_back.text.replace(
        "another job", "job a-very-l of project vision"
    )
    assert held_back.remedy == "it would start now with a time limit of 40 min or less"
    assert held_back.numbers["would_start_limited_to"] == 2400
    reserved = plan.reasons[JobId("a-very-long-name")]
    assert reserved.remedy.endswith("GPUs are kept for it as they become free")
    # Only the estimate shows the start: there is no second time beside it.
    assert " min" not in held_back.text + reserved.remedy


def test_short_jobs_overtake_long_equal_jobs() -> None:
    jobs = [waiting(f"w{i}", time_limit_s=60 if i % 2 else 6000) for i in range(6)]
    pool = box(running("a", 0, 1, time_limit_s=600), waiting("large", 4), *jobs)
    assert started(decide(pool)) == ["w1", "w3"]


def test_elastic_job_does_not_grow_into_reserved_gpus() -> None:
    grows = running("grows", 0)
    grows = replace(grows, spec=JobSpec(workers=4, min_workers=1))
    pool = box(running("a", 1, time_limit_s=600), grows, waiting("large", 2, workers=1))
    pool = replace(pool, jobs=(*pool.jobs[:2], waiting("huge", 3)))
    assert started(decide(pool)) == []
    ends = replace(grows, spec=grows.spec.changed(time_limit_s=500))
    assert started(decide(replace(pool, jobs=(pool.jobs[0], ends, pool.jobs[2])))) == ["grows"]
