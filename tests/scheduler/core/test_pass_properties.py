"""What one pass promises, for any pool (R1, R8-R11, R15-R20, R22)."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.board import Board
from benchpool_scheduler.core.model import (
    Activity,
    Job,
    Plan,
    Preempt,
    ProjectName,
    Snapshot,
    Start,
)
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after
from benchpool_scheduler.testing.snapshots import busy_snapshots, held_below, snapshots

pools = st.one_of(snapshots(), busy_snapshots())
elastic_pools = st.one_of(snapshots(elastic=True), busy_snapshots(elastic=True))
many = settings(max_examples=150, suppress_health_check=list(HealthCheck))
some = settings(max_examples=80, suppress_health_check=list(HealthCheck))


def gpus_of(job: Job) -> int:
    return sum(len(worker.gpus) for worker in job.held)


def job_named(snapshot: Snapshot, name: str) -> Job:
    return next(job for job in snapshot.jobs if job.id == name)


def starts(plan: Plan) -> dict[str, Start]:
    """Return all that a job gets, what must wait included, as one start."""
    found: dict[str, Start] = {}
    for command in plan.commands:
        if isinstance(command, Start):
            so_far = found.get(command.job, Start(command.job, ()))
            found[command.job] = Start(
                command.job, so_far.workers + command.workers, so_far.after + command.after
            )
    return found


def movers(plan: Plan) -> set[str]:
    """Jobs that leave their places and go on at others (R18)."""
    return {name for name, command in starts(plan).items() if name in command.after}


def preempts(plan: Plan) -> list[Preempt]:
    return [c for c in plan.commands if isinstance(c, Preempt)]


@many
@given(elastic_pools)
def test_no_gpu_is_given_twice_and_none_that_is_not_there(pool: Snapshot) -> None:
    plan = decide(pool)
    gone = {gpu for c in preempts(plan) for w in c.workers for gpu in w.gpus}
    held = Counter(gpu for job in pool.jobs for w in job.held for gpu in w.gpus)
    leaving = {
        gpu
        for job in pool.jobs
        if job.activity is Activity.TERMINATING
        for w in job.held
        for gpu in w.gpus
    }
    usable = {gpu: node.name for node in pool.nodes if node.ready for gpu in node.gpus}
    given_out = Counter(gpu for c in starts(plan).values() for w in c.workers for gpu in w.gpus)
    assert all(number == 1 for number in given_out.values())
    for command in starts(plan).values():
        for worker in command.workers:
            for gpu in worker.gpus:
                assert usable[gpu] == worker.node
                assert not held[gpu] or gpu in gone | leaving
                assert not held[gpu] or command.after
    for start in plan.commands:
        if isinstance(start, Start) and not start.after:
            assert not any(held[gpu] for worker in start.workers for gpu in worker.gpus)


@many
@given(elastic_pools)
def test_a_gang_starts_with_at_least_its_smallest_size_and_at_most_its_largest(
    pool: Snapshot,
) -> None:
    plan = decide(pool)
    for name, command in starts(plan).items():
        job = job_named(pool, name)
        held = 0 if name in movers(plan) else len(job.held)
        assert job.min_workers <= len(command.workers) + held <= job.workers
        assert all(len(worker.gpus) == job.gpus for worker in command.workers)


@many
@given(elastic_pools)
def test_no_limit_is_passed_and_non_preemptible_work_stays_within_quota(pool: Snapshot) -> None:
    done = after(pool, decide(pool))
    for project in pool.projects:
        (before, firm_before), (every, firm) = (
            held_below(pool, project.name),
            held_below(done, project.name),
        )
        assert project.limit is None or every <= max(project.limit, before)
        assert project.quota is None or firm <= max(project.quota, firm_before)


@many
@given(elastic_pools)
def test_every_waiting_job_has_exactly_one_reason_and_nobody_else_has(pool: Snapshot) -> None:
    plan = decide(pool)
    started = {c.job for c in plan.commands if isinstance(c, Start) and not c.after}
    waiting = {j.id for j in pool.jobs if j.activity is Activity.QUEUED} - started
    assert set(plan.reasons) == waiting
    assert all(reason.text and reason.remedy for reason in plan.reasons.values())


@many
@given(elastic_pools)
def test_only_preemptible_unprotected_running_jobs_give_way(pool: Snapshot) -> None:
    for command in preempts(decide(pool)):
        victim = job_named(pool, command.job)
        assert victim.activity is Activity.RUNNING
        assert victim.preemptible
        if len(command.workers) == len(victim.held):
            assert victim.ran_s >= pool.policy.min_runtime_s
            assert victim.preemptions_last_hour < pool.policy.preemptions_per_hour


@many
@given(elastic_pools)
def test_nobody_gives_way_unless_the_claimant_gets_its_room(pool: Snapshot) -> None:
    plan = decide(pool)
    for command in preempts(plan):
        if command.claimant is None:
            assert command.rule == "R3"
            continue
        assert command.job in starts(plan)[command.claimant].after


@many
@given(pools)
def test_in_quota_work_never_gives_way_to_over_quota_work_of_others(pool: Snapshot) -> None:
    plan = decide(pool)
    board = Board.of(pool)
    for command in preempts(plan):
        victim = job_named(pool, command.job)
        if command.claimant is None or command.job in movers(plan):
            continue
        claimant = job_named(pool, command.claimant)
        if claimant.project == victim.project:
            assert claimant.priority > victim.priority
            continue
        mine, theirs = board.tree.of(claimant.project), board.tree.of(victim.project)
        level = next(
            i for i, (a, b) in enumerate(zip(mine.path, theirs.path, strict=False)) if a != b
        )
        above_quota = [_over(pool, board, i) for i in theirs.path[level:]]
        assert any(above_quota), "somebody on the victim's side holds more than guaranteed"


def _over(pool: Snapshot, board: Board, index: int) -> bool:
    project = board.tree.branches[index]
    held, _ = held_below(pool, ProjectName(project.name))
    return project.quota[0] is not None and held * 1000 > project.quota[0]


@many
@given(pools)
def test_whoever_fits_starts(pool: Snapshot) -> None:
    """R9, except for GPUs that are promised to somebody or kept for benches."""
    done = after(pool, decide(pool))
    if any(job.earmarked for job in done.jobs):
        return
    board = Board.of(done)
    for work in board.works.values():
        if not work.queued:
            continue
        if board.ledger.over_limit(work, work.core, soon=False) is not None:
            continue
        if board.ledger.over_guarantee(work, work.core, soon=False) is not None:
            continue
        victims = {c.job for c in preempts(decide(pool))}
        slots = sum(node.slots(work.fit, soon=False) for node in board.room.nodes)
        if work.job.id in victims or victims:
            continue  # what a victim leaves over is free only when it has gone
        assert slots < work.job.min_workers


@some
@given(elastic_pools)
def test_no_victim_could_be_spared(pool: Snapshot) -> None:
    """R18: with any one victim back, the claimants no longer all fit."""
    plan = decide(pool)
    claims = [c for c in preempts(plan) if c.claimant is not None]
    whole = [c for c in claims if len(c.workers) == len(job_named(pool, c.job).held)]
    if len(pool.nodes) > 1 or any(p.limit is not None for p in pool.projects):
        return
    node = pool.nodes[0]
    for command in whole:
        spared = sum(len(worker.gpus) for worker in command.workers)
        done = after(pool, plan)
        used = sum(gpus_of(job) for job in done.jobs)
        promised = sum(len(w.gpus) for job in done.jobs for w in job.promised)
        assert len(node.gpus) - node.kept - used - promised < spared


@many
@given(pools)
def test_after_a_few_passes_nothing_changes_any_more(pool: Snapshot) -> None:
    """R20: commands die out, and then a pass does nothing."""
    for _ in range(8):
        before, pool = pool, after(pool, decide(pool))
        if pool == before:
            break
    assert after(pool, decide(pool)) == pool


@some
@given(elastic_pools)
def test_elastic_pools_come_to_rest_too(pool: Snapshot) -> None:
    for _ in range(12):
        before, pool = pool, after(pool, decide(pool))
        if pool == before:
            break
    assert after(pool, decide(pool)) == pool


@many
@given(pools)
def test_jobs_above_their_quota_are_named(pool: Snapshot) -> None:
    plan = decide(pool)
    if any(command.after for command in starts(plan).values()):
        return  # such jobs do not run yet
    done = after(pool, plan)
    for project in pool.projects:
        running = [
            j for j in done.jobs if j.project == project.name and j.activity is Activity.RUNNING
        ]
        held = sum(gpus_of(job) for job in running)
        if project.quota is None or held <= project.quota:
            assert not {job.id for job in running} & plan.over_quota
        else:
            assert {job.id for job in running} & plan.over_quota


@many
@given(pools)
def test_a_job_moves_only_to_free_places_of_its_own_size(pool: Snapshot) -> None:
    plan = decide(pool)
    held = {gpu for job in pool.jobs for worker in job.held for gpu in worker.gpus}
    for name in movers(plan):
        job, command = job_named(pool, name), starts(plan)[name]
        assert job.preemptible
        assert job.checkpoints
        assert len(command.workers) == len(job.held)
        assert not held & {gpu for worker in command.workers for gpu in worker.gpus}


@some
@given(elastic_pools)
def test_the_same_pool_gets_the_same_plan(pool: Snapshot) -> None:
    assert decide(pool) == decide(pool)
