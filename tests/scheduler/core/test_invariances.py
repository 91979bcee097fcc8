"""Invariances and scaling of decisions (R4-R11)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    Snapshot,
    Worker,
)
from benchpool_scheduler.core.plan import decide
from benchpool_support.examples import examples
from benchpool_support.plans import at_rest
from benchpool_support.reference.holdings import children, leaves, totals
from benchpool_support.reference.shares import demands, fair_shares
from benchpool_support.wide_snapshots import PLAIN, wide_snapshots

many = settings(max_examples=examples(120), suppress_health_check=list(HealthCheck))
single_gpu = replace(PLAIN, one_gpu=True)


@st.composite
def with_equal_jobs(draw: st.DrawFn) -> tuple[Snapshot, Snapshot]:
    """Draw a pool with some equal waiting jobs, and the same pool with those in another order."""
    pool = draw(wide_snapshots(waiting=3))
    waiting = [job for job in pool.jobs if job.activity is Activity.QUEUED]
    twins = [job for job in waiting for _ in range(draw(st.integers(0, 3)))]
    order = draw(st.permutations(range(len(twins))))
    one = [replace(job, id=JobId(f"twin{i:02}")) for i, job in enumerate(twins)]
    other = [replace(job, id=JobId(f"twin{i:02}")) for i, job in zip(order, twins, strict=True)]
    return replace(pool, jobs=(*pool.jobs, *one)), replace(pool, jobs=(*pool.jobs, *other))


@many
@given(with_equal_jobs())
def test_order_of_equal_jobs_changes_no_total(
    pools: tuple[Snapshot, Snapshot],
) -> None:
    """Jobs of one project, user and shape differ only in their names."""
    one, other = pools
    assert decide(one).shares == decide(other).shares
    assert totals(at_rest(one)) == totals(at_rest(other))


@many
@given(wide_snapshots(replace(PLAIN, one_gpu=True), nodes=1, running=10), st.randoms())
def test_order_of_equal_running_jobs_changes_no_total(pool: Snapshot, random: object) -> None:
    """On one node, with jobs of one GPU: the victims may differ, the totals of projects may not."""
    alike = [
        replace(job, spec=job.spec.changed(priority=50), ran_s=60.0, since_checkpoint_s=None)
        for job in pool.jobs
    ]
    one = replace(pool, jobs=tuple(replace(job, checkpoints=True) for job in alike))
    swapped = list(one.jobs)
    for name in leaves(pool):
        mine = [i for i, job in enumerate(swapped) if job.project == name and job.held]
        for i, k in zip(mine, mine[::-1], strict=True):
            if i < k:
                swapped[i], swapped[k] = swapped[k], swapped[i]
    other = replace(one, jobs=tuple(swapped))
    assert totals(at_rest(one)) == totals(at_rest(other))


def doubled(pool: Snapshot) -> Snapshot:
    """Return the pool with two of everything: nodes, quotas, limits and jobs."""
    nodes = [_copy(node, i) for node in pool.nodes for i in (1, 2)]
    projects = [
        replace(
            project,
            quota=None if project.quota is None else 2 * project.quota,
            limit=None if project.limit is None else 2 * project.limit,
            weight=_weight(project),
        )
        for project in pool.projects
    ]
    jobs = [_twin(job, i) for job in pool.jobs for i in (1, 2)]
    return replace(pool, nodes=tuple(nodes), projects=tuple(projects), jobs=tuple(jobs))


def _weight(project: Project) -> float:
    if project.weight is not None:
        return project.weight
    return 1.0 if project.quota is None else float(project.quota)


def _copy(node: Node, number: int) -> Node:
    gpus = tuple(GpuId(f"{gpu}.{number}") for gpu in node.gpus)
    return replace(node, name=NodeName(f"{node.name}.{number}"), gpus=gpus)


def _twin(job: JobFacts, number: int) -> JobFacts:
    workers = tuple(
        Worker(NodeName(f"{w.node}.{number}"), tuple(GpuId(f"{g}.{number}") for g in w.gpus))
        for w in job.held
    )
    return replace(job, id=JobId(f"{job.id}.{number}"), held=workers)


@many
@given(wide_snapshots(single_gpu, nodes=3, running=8, waiting=10))
def test_doubled_pool_doubles_unrounded_shares(pool: Snapshot) -> None:
    """R4, R5: of a rounded slice one odd GPU goes to one project, and two odd GPUs go to two."""
    if fair_shares(pool).rounded:
        return
    once, twice = decide(pool).shares, decide(doubled(pool)).shares
    assert {k: 2 * s.fair_share for k, s in once.items()} == {
        k: s.fair_share for k, s in twice.items()
    }


@many
@given(wide_snapshots(single_gpu, nodes=3, running=8, waiting=10))
def test_doubled_pool_holds_twice_without_rounding(pool: Snapshot) -> None:
    """R9, R15: for pools of one-GPU jobs without rounding, in which shares use up GPUs or demand.

    The latter holds at every level. Whole shares make the doubled shares exact. Jobs of one GPU fit
    any gap, so a settled project holds its share. Larger jobs may not fit the share they deserve
    but fit twice that share. GPUs outside all shares are assigned in turns, and twice as many of
    them end elsewhere.
    """
    shares = fair_shares(pool)
    room = sum(len(node.gpus) for node in pool.nodes)
    asked = demands(pool)
    names = leaves(pool)
    given_out = sum(shares.of[name][0] for name in names)
    if shares.rounded or given_out != min(room, sum(asked[name][0] for name in names)):
        return
    for project in pool.projects:
        below = [shares.of[child.name][0] for child in children(pool, project.name)]
        if below and sum(below) != shares.of[project.name][0]:
            return
    one, two = totals(at_rest(pool)), totals(at_rest(doubled(pool), passes=20))
    for name in names:
        assert one[name] == shares.of[name][0]
        assert two[name] == 2 * one[name]
