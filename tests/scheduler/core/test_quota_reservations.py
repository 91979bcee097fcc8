"""A reservation raises a quota for a time: no other quota falls, and it ends on time."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.fairness.reservations import (
    QuotaReservation,
    next_edge_s,
    raised,
    standing,
    unfit,
)
from benchpool_scheduler.core.jobs.tree import Tree
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Preempt,
    Project,
    ProjectName,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.core.plan import decide
from benchpool_support.examples import examples
from benchpool_support.snapshots import busy_snapshots, held_below, snapshots

slow = settings(max_examples=examples(60), deadline=None)
GPUS_RESERVED = st.integers(1, 6)


def gpus_of(pool: Snapshot) -> int:
    return sum(len(node.gpus) - node.kept for node in pool.nodes if node.ready)


def leaves(pool: Snapshot) -> list[Project]:
    parents = {it.parent for it in pool.projects}
    return [it for it in pool.projects if it.name not in parents]


def bounded(project: Project, pool: Snapshot) -> int:
    """Return a project's quota; if it is guaranteed all GPUs, return the quota of its children."""
    if project.quota is not None:
        return project.quota
    return sum(bounded(it, pool) for it in pool.projects if it.parent == project.name)


@st.composite
def reserved(
    draw: st.DrawFn, pools: st.SearchStrategy[Snapshot]
) -> tuple[Snapshot, QuotaReservation]:
    """Draw a pool and a reservation that fits; add a machine if its quotas leave no capacity."""
    pool = draw(pools)
    projects = tuple(replace(it, quota=bounded(it, pool)) for it in pool.projects)
    one = QuotaReservation(
        "r", draw(st.sampled_from(leaves(pool))).name, draw(GPUS_RESERVED), 0.0, 1.0
    )
    wanted = one.gpus + sum(it.quota or 0 for it in projects if it.parent is None)
    spare = tuple(GpuId(f"spare-{number}") for number in range(wanted - gpus_of(pool)))
    nodes = (*pool.nodes, Node(NodeName("spare"), spare)) if spare else pool.nodes
    pool = replace(pool, nodes=nodes, projects=projects)
    assert unfit(projects, [one], gpus_of(pool), 0.0) is None
    return pool, one


@given(reserved(snapshots()))
@slow
def test_reservation_lowers_no_other_guarantee(
    what: tuple[Snapshot, QuotaReservation],
) -> None:
    pool, one = what
    plan = decide(replace(pool, projects=raised(pool.projects, [one])))
    before = decide(pool)
    for project in leaves(pool):
        was, now = before.shares[project.name], plan.shares[project.name]
        guaranteed = was.fair_share if was.quota is None else min(was.quota, was.fair_share)
        assert now.fair_share >= guaranteed


def over_quota(pool: Snapshot, name: ProjectName) -> bool:
    """Return whether a project, or an ancestor, holds more than its guarantee."""
    projects = {it.name: it for it in pool.projects}
    at: ProjectName | None = name
    while at is not None:
        if held_below(pool, at)[0] > (projects[at].quota or 0):
            return True
        at = projects[at].parent
    return False


@given(reserved(busy_snapshots()))
@slow
def test_reservation_preempts_no_in_quota_work(
    what: tuple[Snapshot, QuotaReservation],
) -> None:
    pool, one = what
    plan = decide(replace(pool, projects=raised(pool.projects, [one])))
    lost = {it.job for it in plan.commands if isinstance(it, Preempt)}
    claimants = {it.claimant for it in plan.commands if isinstance(it, Preempt)}
    of = {job.id: job for job in pool.jobs}
    for job in lost:
        inside = {it for it in claimants if it and of[it].project == of[job].project}
        assert inside or over_quota(pool, of[job].project) or of[job].project == one.project


@given(reserved(snapshots()))
@slow
def test_non_preemptible_work_never_starts_on_reservation(
    what: tuple[Snapshot, QuotaReservation],
) -> None:
    pool, one = what
    plan = decide(replace(pool, projects=raised(pool.projects, [one])))
    of = {job.id: job for job in pool.jobs}
    for project in pool.projects:
        started = sum(
            len(it.workers) * of[it.job].spec.gpus
            for it in plan.commands
            if isinstance(it, Start) and not of[it.job].spec.preemptible
            if of[it.job].project == project.name and of[it.job].fraction is None
        )
        _, firm = held_below(pool, project.name)
        if started and project.quota is not None:
            assert firm + started <= project.quota


GPUS = 8


def pool_of(*jobs: JobFacts) -> Snapshot:
    node = Node(NodeName("box"), tuple(GpuId(f"g{number}") for number in range(GPUS)))
    vision = Project(ProjectName("vision"), quota=2)
    return Snapshot((node,), (vision, Project(ProjectName("speech"), quota=2)), jobs)


def test_quotas_are_unchanged_outside_reservation_period() -> None:
    pool = pool_of()
    one = QuotaReservation("paper", pool.projects[0].name, 4, 100.0, 200.0)
    for at, quota in ((99.9, 2), (100.0, 6), (199.9, 6), (200.0, 2)):
        assert raised(pool.projects, standing([one], at))[0].quota == quota
    assert [next_edge_s([one], at) for at in (0.0, 100.0, 200.0)] == [100.0, 200.0, None]


def test_reservation_gets_gpus_of_over_quota_work() -> None:
    pool = pool_of()
    vision, speech = (it.name for it in pool.projects)
    box = pool.nodes[0]
    runs = tuple(
        JobFacts(
            JobId(f"s{number}"), speech, activity=Activity.RUNNING, ran_s=60.0,
            held=(Worker(box.name, (gpu,)),),
        )
        for number, gpu in enumerate(box.gpus)
    )  # fmt: skip
    waits = JobFacts(JobId("v"), vision, JobSpec(gpus=6))
    pool = replace(pool, jobs=(*runs, waits))
    one = QuotaReservation("paper", vision, 4, 0.0, 100.0)
    assert unfit(pool.projects, [one], GPUS, 0.0) is None
    plan = decide(replace(pool, projects=raised(pool.projects, [one])))
    paused = [it for it in plan.commands if isinstance(it, Preempt)]
    assert (len(paused), {it.claimant for it in paused}) == (6, {"v"})
    beyond = [it for it in decide(pool).commands if isinstance(it, Preempt)]
    assert beyond == []


def test_reservation_beyond_capacity_is_named_with_numbers() -> None:
    pool = pool_of()
    vision, speech = (it.name for it in pool.projects)
    first = QuotaReservation("first", vision, 3, 100.0, 200.0)
    second = QuotaReservation("second", speech, 3, 150.0, 250.0)
    found = unfit(pool.projects, [first, second], GPUS, 0.0)
    assert found is not None
    assert (found.name, found.quotas, found.reserved, found.at_s) == ("second", 4, 6, 150.0)
    apart = replace(second, begins_s=200.0)
    assert unfit(pool.projects, [first, apart], GPUS, 0.0) is None
    assert unfit(pool.projects, [first, second], GPUS, 200.0) is None
    everything = (replace(pool.projects[0], quota=None), pool.projects[1])
    found = unfit(everything, [replace(first, project=speech)], GPUS, 0.0)
    assert found is not None
    assert found.quotas is None


def test_ancestors_get_reservation_and_weights_stay() -> None:
    top = Project(pool_of().projects[0].name, quota=4, limit=6)
    below = replace(pool_of().projects[1], parent=top.name, quota=1)
    one = QuotaReservation("r", below.name, 3, 0.0, 1.0)
    above, lower = raised((top, below), [one])
    assert (above.quota, above.limit) == (7, 9)
    assert (lower.quota, lower.limit) == (4, None)
    assert [branch.weights[0] for branch in Tree((above, lower)).branches] == [4.0, 1.0]
