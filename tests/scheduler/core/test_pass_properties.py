"""Properties of one pass, for any pool (R1, R3, R8-R10, R20, R22)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.model import Activity, JobFacts, JobId, Snapshot
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after
from benchpool_support.examples import examples
from benchpool_support.leaving import gone, under_way
from benchpool_support.plans import at_rest, lost, movers, preempts, starts
from benchpool_support.reference.holdings import (
    GPUS,
    booked,
    bounds,
    job_named,
    need,
    occupied,
)
from benchpool_support.reference.places import domain, startable
from benchpool_support.reference.shares import fair_shares
from benchpool_support.snapshots import busy_snapshots
from benchpool_support.wide_snapshots import snapshots_under_way, wide_snapshots

pools = st.one_of(wide_snapshots(), busy_snapshots(elastic=True))
any_moment = st.one_of(wide_snapshots(), snapshots_under_way(), busy_snapshots(elastic=True))
many = settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
some = settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))


def gpus_of(job: JobFacts) -> int:
    return sum(len(worker.gpus) for worker in job.held)


def bare(pool: Snapshot) -> Snapshot:
    """Return the pool without its promises, with held GPUs only."""
    jobs = tuple(replace(job, is_nominated=False, nominated=()) for job in pool.jobs)
    return replace(pool, jobs=jobs)


@many
@given(any_moment)
def test_gpus_are_assigned_once_and_exist(pool: Snapshot) -> None:
    """R1: an assigned GPU exists, is ready, and is free or held by a job that leaves first."""
    plan = decide(pool)
    usable = {gpu: node.name for node in pool.nodes if node.ready for gpu in node.gpus}
    holder = {gpu: job.id for job in pool.jobs for w in job.held for gpu in w.gpus}
    given_out = Counter(gpu for c in starts(plan).values() for w in c.workers for gpu in w.gpus)
    assert all(number == 1 for number in given_out.values())
    for command in plan.commands:
        if command in preempts(plan):
            continue
        for worker in command.workers:
            for gpu in worker.gpus:
                assert usable[gpu] == worker.node
                assert gpu not in holder or holder[gpu] in command.after  # type: ignore[union-attr]
    going = {gpu for workers in lost(plan).values() for w in workers for gpu in w.gpus}
    going |= {gpu for c in preempts(plan) for w in c.workers for gpu in w.gpus}
    staying = {
        gpu
        for job in pool.jobs
        if job.activity is Activity.RUNNING
        for w in job.held
        for gpu in w.gpus
    } - going
    assert not staying & set(given_out)


@many
@given(any_moment)
def test_no_resource_is_held_twice_after_pass(pool: Snapshot) -> None:
    """R1, while the victims still hold their GPUs and after they have left."""
    plan = decide(pool)
    at_once, gradually = after(pool, plan), gone(under_way(pool, plan))
    for later, workers in ((at_once, lambda job: job.held), (gradually, occupied)):
        for node in later.nodes:
            here = [(job, w) for job in later.jobs for w in workers(job) if w.node == node.name]
            gpus = [gpu for _, worker in here for gpu in worker.gpus]
            assert len(gpus) == len(set(gpus))
            cpus, memory = (sum(need(job)[r] for job, _ in here) for r in (1, 2))
            assert node.cpus is None or cpus <= node.cpus
            assert node.memory_gib is None or memory <= node.memory_gib


@many
@given(any_moment)
def test_gang_starts_between_minimum_and_maximum_size(
    pool: Snapshot,
) -> None:
    """R10."""
    plan = decide(pool)
    taken = lost(plan)
    for name, command in starts(plan).items():
        job = job_named(pool, name)
        held = 0 if name in movers(plan) or job.activity is Activity.TERMINATING else len(job.held)
        held -= len(taken.get(name, ()))
        assert job.spec.least_workers <= len(command.workers) + held <= job.spec.workers
        assert all(len(worker.gpus) == job.spec.gpus for worker in command.workers)


@many
@given(any_moment)
def test_limits_hold_and_non_preemptible_work_stays_in_quota(pool: Snapshot) -> None:
    """R8, at every level and for every resource; earlier excess does not grow."""
    plan = decide(pool)
    for later in (bare(after(pool, plan)), gone(under_way(pool, plan))):
        for kind in ("limit", "quota"):
            before = booked(pool, firm=kind == "quota")
            now = booked(later, firm=kind == "quota")
            for project in pool.projects:
                for r, bound in enumerate(bounds(project, kind)):
                    if bound is not None:
                        assert now[project.name][r] <= max(bound, before[project.name][r])


@many
@given(any_moment)
def test_every_waiting_job_has_exactly_one_reason(pool: Snapshot) -> None:
    """R22."""
    plan = decide(pool)
    later = under_way(pool, plan)
    stopped = {j.id for j in pool.jobs if len(lost(plan).get(j.id, ())) == len(j.held) > 0}
    waiting = {j.id for j in later.jobs if j.activity is Activity.QUEUED}
    assert set(plan.reasons) - stopped == waiting
    assert all(reason.text and reason.remedy for reason in plan.reasons.values())


@many
@given(pools)
def test_settled_pool_has_no_startable_waiting_job(pool: Snapshot) -> None:
    """R9: no waiting job fits within all limits and quotas. Promised places are respected (R20)."""
    still = at_rest(pool)
    for job in still.jobs:
        if job.activity is Activity.QUEUED and not job.is_nominated:
            assert not startable(still, job, job.spec.least_workers), job.id


@many
@given(pools)
def test_settled_gangs_have_largest_possible_size(pool: Snapshot) -> None:
    """R9, R10: above the smallest size, workers are added one by one while GPUs are free."""
    still = at_rest(pool)
    for job in still.jobs:
        if job.activity is Activity.RUNNING and len(job.held) < job.spec.workers:
            assert not startable(still, job, 1), job.id


@many
@given(pools)
def test_plan_is_stable_after_few_passes(pool: Snapshot) -> None:
    """R20: commands end after a few passes, and five further passes do nothing."""
    still = at_rest(pool)
    for _ in range(5):
        assert after(still, decide(still)) == still


@many
@given(pools)
def test_jobs_above_quota_are_named(pool: Snapshot) -> None:
    """R4, R5a: each project's jobs above its guarantee are named, with the exact GPU count."""
    plan, guaranteed = decide(pool), fair_shares(pool).guaranteed
    if any(command.after for command in starts(plan).values()):
        return  # such jobs do not run yet
    done = after(pool, plan)
    for project in pool.projects:
        running = [
            j for j in done.jobs if j.project == project.name and j.activity is Activity.RUNNING
        ]
        held = sum(gpus_of(job) for job in running)
        over = [gpu for job in running for gpu in plan.over_quota.get(job.id, ())]
        quota = guaranteed[project.name][GPUS]
        assert len(over) == (0 if quota is None else max(0, held - quota))
        for job in running:
            mine = {gpu for worker in job.held for gpu in worker.gpus}
            assert plan.over_quota.get(job.id, frozenset()) <= mine


@some
@given(any_moment)
def test_same_pool_gets_same_plan(pool: Snapshot) -> None:
    assert decide(pool) == decide(pool)


@some
@given(any_moment)
def test_job_names_decide_nothing(pool: Snapshot) -> None:
    """Age is the position in the list; an ID is only a name."""
    renamed = replace(
        pool, jobs=tuple(replace(job, id=JobId(f"{99 - i}")) for i, job in enumerate(pool.jobs))
    )
    names = {job.id: again.id for job, again in zip(pool.jobs, renamed.jobs, strict=True)}
    assert [names[c.job] for c in decide(pool).commands] == [
        c.job for c in decide(renamed).commands
    ]


@many
@given(any_moment)
def test_workers_run_only_on_permitted_nodes(pool: Snapshot) -> None:
    """R12, R13: an accepted model, and one domain of the required level for the whole gang."""
    nodes = {node.name: node for node in pool.nodes}
    plan = decide(pool)
    for later in (after(pool, plan), gone(under_way(pool, plan))):
        for name in starts(plan):
            job = job_named(later, name)
            models = {nodes[worker.node].gpu_model for worker in occupied(job)}
            assert not job.spec.gpu_models or models <= set(job.spec.gpu_models)
            if (level := job.spec.required_level) is not None:
                domains = {domain(nodes[w.node], level, pool.topology) for w in occupied(job)}
                assert len(domains) <= 1
                assert None not in domains


@many
@given(any_moment)
def test_limits_hold_while_victims_still_hold_gpus(pool: Snapshot) -> None:
    """R8: started jobs fit beside leaving jobs."""
    later = under_way(pool, decide(pool))
    before, now = booked(pool), booked(bare(later))
    for project in pool.projects:
        for r, bound in enumerate(bounds(project, "limit")):
            if bound is not None:
                assert now[project.name][r] <= max(bound, before[project.name][r])


@many
@given(pools)
def test_job_is_not_preempted_repeatedly(pool: Snapshot) -> None:
    """R20: without an external event, a job is stopped at most once."""
    history: dict[str, list[int]] = {job.id: [] for job in pool.jobs}
    for _ in range(12):
        plan = decide(pool)
        for command in preempts(plan):
            if command.job not in movers(plan):
                history[command.job].append(1)
        pool = after(pool, plan)
    for name, stops in history.items():
        assert len(stops) <= 1, name
