"""Properties of victims, for any pool (R15-R19)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.model import Activity, JobFacts, JobId, Plan, ProjectName, Snapshot
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after
from benchpool_support.examples import examples
from benchpool_support.leaving import gone, places, under_way
from benchpool_support.plans import lost, movers, preempts, starts
from benchpool_support.reference.claims import protected
from benchpool_support.reference.holdings import (
    GPUS,
    Amounts,
    changed,
    held,
    job_named,
    need,
    occupied,
    path,
    plus,
    times,
)
from benchpool_support.reference.places import startable
from benchpool_support.reference.shares import FairShares, fair_shares
from benchpool_support.snapshots import busy_snapshots
from benchpool_support.wide_snapshots import Breadth, wide_snapshots

pools = st.one_of(wide_snapshots(running=12, waiting=4), busy_snapshots(elastic=True))
still_pools = st.one_of(
    wide_snapshots(Breadth(leaving=False), running=12, waiting=4), busy_snapshots(elastic=True)
)
many = settings(max_examples=examples(120), suppress_health_check=list(HealthCheck))


@many
@given(pools)
def test_only_preemptible_unprotected_jobs_are_preempted(pool: Snapshot) -> None:
    """R16, R19."""
    plan = decide(pool)
    for name, workers in lost(plan).items():
        victim = job_named(pool, name)
        assert victim.activity is Activity.RUNNING
        assert victim.spec.preemptible
        if protected(pool, victim):
            assert len(victim.held) - len(workers) >= victim.spec.least_workers


@many
@given(pools)
def test_victim_stops_whole_or_keeps_minimum_size(pool: Snapshot) -> None:
    """R10, R18: no gang keeps less than its smallest size."""
    for name, workers in lost(decide(pool)).items():
        victim = job_named(pool, name)
        left = len(victim.held) - len(workers)
        assert left == 0 or left >= victim.spec.least_workers


@many
@given(still_pools)
def test_preemption_always_enables_a_start(pool: Snapshot) -> None:
    """R17, R21: after its victims have left, the claimant starts in the next pass."""
    plan = decide(pool)
    later = gone(under_way(pool, plan))
    then = after(later, decide(later))
    for command in preempts(plan):
        if command.claimant is None:
            assert command.rule == "R3"
            continue
        before, now = job_named(pool, command.claimant), job_named(then, command.claimant)
        assert now.activity is Activity.RUNNING
        promised = len(starts(plan)[before.id].workers)
        assert len(now.held) >= len(before.held) + promised


def side(pool: Snapshot, one: ProjectName, other: ProjectName) -> list[ProjectName]:
    """Return the projects on the first path below its branching from the second path."""
    mine, theirs = path(pool, one), path(pool, other)
    return [name for name in mine if name not in theirs]


def started_plainly(pool: Snapshot, plan: Plan) -> Snapshot:
    """Return the pool in which jobs that start without waiting are running."""
    jobs = {job.id: job for job in pool.jobs}
    for command in plan.commands:
        if command not in preempts(plan) and not command.after:  # type: ignore[union-attr]
            job = jobs[command.job]
            workers = (*job.held, *command.workers)
            jobs[job.id] = replace(job, held=workers, activity=Activity.RUNNING)
    return replace(pool, jobs=tuple(jobs.values()))


@many
@given(still_pools)
def test_over_quota_work_never_preempts_in_quota_work(pool: Snapshot) -> None:
    """R16: a branch within its guarantee loses nothing to a branch above its guarantee."""
    plan = decide(pool)
    most = held(started_plainly(pool, plan))
    now, due = held(pool), fair_shares(pool)
    for command in preempts(plan):
        if command.claimant is None or command.job in movers(plan):
            continue
        victim, claimant = job_named(pool, command.job), job_named(pool, command.claimant)
        if victim.project == claimant.project:
            assert victim.spec.priority < claimant.spec.priority
            continue
        asked = times(need(claimant), 1 if claimant.held else claimant.spec.least_workers)
        taken = given_up(pool, plan)

        def after_claim(name: ProjectName) -> Amounts:
            return plus(plus(now[name], asked), times(taken.get(name, asked), -1))  # noqa: B023

        firm = not any(
            over(due, name, most[name]) for name in side(pool, victim.project, claimant.project)
        )
        greedy = any(
            over(due, name, after_claim(name))
            for name in side(pool, claimant.project, victim.project)
        )
        assert not (firm and greedy)


def given_up(pool: Snapshot, plan: Plan) -> dict[ProjectName, Amounts]:
    """Return the losses of each project and its descendants."""
    found = {
        project.name: times(need(JobFacts(JobId(""), project.name)), 0) for project in pool.projects
    }
    for name, workers in lost(plan).items():
        job = job_named(pool, name)
        for above in path(pool, job.project):
            found[above] = plus(found[above], times(need(job), len(workers)))
    return found


def over(due: FairShares, name: ProjectName, amounts: Amounts) -> bool:
    """Return whether amounts exceed the guaranteed GPUs of a project."""
    quota = due.guaranteed[name][GPUS]
    return quota is not None and amounts[GPUS] > quota


@many
@given(still_pools)
def test_victims_are_above_share_or_quota(pool: Snapshot) -> None:
    """R15: its holdings, including the starts of this pass, exceeded its due."""
    plan = decide(pool)
    most, due = held(started_plainly(pool, plan)), fair_shares(pool)
    for command in preempts(plan):
        if command.claimant is None or command.job in movers(plan):
            continue
        victim, claimant = job_named(pool, command.job), job_named(pool, command.claimant)
        if victim.project == claimant.project:
            continue
        theirs = side(pool, victim.project, claimant.project)
        quota = due.guaranteed[theirs[0]]
        above_quota = any(q is not None and most[theirs[0]][r] > q for r, q in enumerate(quota))
        above_share = all(any(most[name][r] > due.of[name][r] for r in range(3)) for name in theirs)
        assert above_quota or above_share


def spared(
    pool: Snapshot, done: Snapshot, claimant: JobFacts, victim: JobFacts, back: tuple[object, ...]
) -> bool:
    """Return whether the claimant could start if the victim kept these workers."""
    now = job_named(done, claimant.id)
    workers = len(occupied(now)) - len(claimant.held)
    bare = changed(done, replace(claimant, is_nominated=False, nominated=()))
    later = job_named(done, victim.id)
    kept = tuple(worker for worker in victim.held if worker in back or worker in later.held)
    if later.held and not set(later.held) <= set(victim.held):
        return False  # it already runs again elsewhere
    used = {gpu for job in bare.jobs for w in occupied(job) for gpu in w.gpus if job.id != later.id}
    if any(gpu in used for worker in kept for gpu in worker.gpus):
        return False  # another job needs the released GPUs
    again = changed(bare, replace(victim, held=kept))
    return startable(again, claimant, workers)


@many
@given(still_pools)
def test_job_gets_its_promised_gpus(pool: Snapshot) -> None:
    """R20: while the victims leave, and after they have left."""
    plan = decide(pool)
    leaving = under_way(pool, plan)
    promised = {job.id: job.nominated for job in leaving.jobs if job.is_nominated}
    meanwhile = decide(leaving)
    for name, workers in promised.items():
        assert set(workers) <= set(places(meanwhile, name))
    later = gone(leaving)
    finally_ = decide(later)
    for name, workers in promised.items():
        assert set(workers) <= set(places(finally_, name))


@many
@given(still_pools)
def test_no_victim_is_superfluous(pool: Snapshot) -> None:
    """R18: without any one of the taken pieces the claimant has no place."""
    plan = decide(pool)
    done = after(pool, plan)
    for command in preempts(plan):
        if command.claimant is None or command.job in movers(plan):
            continue
        victim, claimant = job_named(pool, command.job), job_named(pool, command.claimant)
        mine, theirs = path(pool, claimant.project), path(pool, victim.project)
        if mine != theirs and mine[0] == theirs[0]:
            continue  # returned GPUs would count on the claimant's own path
        taken = lost(plan)[victim.id]
        surplus = victim.held[victim.spec.least_workers :]
        whole = len(taken) == len(victim.held)
        options = [taken] if whole else [(worker,) for worker in taken if worker in surplus]
        for back in options:
            assert not spared(pool, done, claimant, victim, back), (victim.id, claimant.id)
