"""What-if: two pools at one instant, compared by passes of the core."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from benchpool_scheduler.contract.spec import JobSpec
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
    Worker,
)
from benchpool_scheduler.core.whatif.expansion import with_nodes
from benchpool_scheduler.core.whatif.whatif import Fate, JobComparison, compare, settle
from benchpool_scheduler.errors import InvalidInput
from benchpool_support.snapshots import snapshots

SUSAN, JOE = ProjectName("susan"), ProjectName("joe")


def node(name: str, gpus: int, model: str | None = None, **more: object) -> Node:
    ids = tuple(GpuId(f"{name}/{index}") for index in range(gpus))
    return Node(NodeName(name), ids, gpu_model=model, **more)  # type: ignore[arg-type]


BOX = node("box", 4)


def running(name: str, project: ProjectName, gpus: int, first: int) -> JobFacts:
    worker = Worker(BOX.name, BOX.gpus[first : first + gpus])
    return JobFacts(
        JobId(name),
        project,
        spec=JobSpec(gpus=gpus),
        activity=Activity.RUNNING,
        held=(worker,),
        ran_s=100.0,
    )


def pool(susan: int, joe: int, *jobs: JobFacts) -> Snapshot:
    return Snapshot(
        nodes=(BOX,),
        projects=(Project(SUSAN, quota=susan), Project(JOE, quota=joe)),
        jobs=jobs,
    )


def only(changes: tuple[JobComparison, ...], name: str) -> JobComparison:
    return next(change for change in changes if change.job.id == name)


def test_larger_quota_shows_starts_and_preemptions() -> None:
    jobs = (running("old", SUSAN, 4, 0), JobFacts(JobId("new"), JOE, spec=JobSpec(gpus=2)))
    found = compare(pool(4, 0, *jobs), pool(2, 2, *jobs))
    old, new = only(found.changed, "old"), only(found.changed, "new")
    assert (new.before.fate, new.after.fate) == (Fate.WAITS, Fate.RUNS)
    assert new.before.reason is not None
    assert new.after.reason is None
    assert (old.before.preempted, old.after.preempted) == (False, True)
    assert old.after.lost_gpu_s == 4 * (100 + 60)
    assert found.allocated == (4, 2)


def test_projects_are_shown_with_shares_before_and_after() -> None:
    jobs = (running("old", SUSAN, 4, 0), JobFacts(JobId("new"), JOE, spec=JobSpec(gpus=2)))
    found = compare(pool(4, 0, *jobs), pool(2, 2, *jobs))
    joe = next(it for it in found.projects if it.name == JOE)
    assert joe.before is not None
    assert joe.after is not None
    assert (joe.before.fair_share, joe.after.fair_share) == (0, 2)
    assert (joe.before.waiting_gpus, joe.after.waiting_gpus) == (2, 0)
    assert (joe.before.allocated, joe.after.allocated) == (0, 2)
    susan = next(it for it in found.projects if it.name == SUSAN)
    assert susan.after is not None
    assert (susan.after.preempted, susan.after.lost_gpu_s) == (1, 640.0)


def test_parent_counts_descendant_jobs() -> None:
    jobs = (running("old", SUSAN, 2, 0), JobFacts(JobId("new"), JOE, spec=JobSpec(gpus=4)))
    flat = pool(2, 2, *jobs)
    tree = (
        Project(ProjectName("lab"), quota=4),
        *(replace(project, parent=ProjectName("lab")) for project in flat.projects),
    )
    found = compare(flat, replace(flat, projects=tree))
    lab = found.projects[0]
    assert lab.before is None
    assert lab.after is not None
    assert (lab.after.running, lab.after.waiting, lab.after.allocated) == (1, 1, 2)


def test_removed_project_is_listed_last() -> None:
    before = pool(4, 0, running("old", SUSAN, 4, 0))
    found = compare(before, replace(before, projects=before.projects[:1]))
    assert [(it.name, it.after is None) for it in found.projects] == [(SUSAN, False), (JOE, True)]


def test_added_gpus_start_waiting_jobs_without_preemption() -> None:
    full = pool(
        4, 0, running("old", SUSAN, 4, 0), JobFacts(JobId("new"), JOE, spec=JobSpec(gpus=3))
    )
    found = compare(full, with_nodes(full, 3))
    assert [(it.job.id, it.after.fate) for it in found.changed] == [("new", Fate.RUNS)]
    assert found.gpus == (4, 7)


def test_job_waiting_for_victims_is_promised_but_not_running() -> None:
    leaving = replace(running("old", SUSAN, 4, 0), activity=Activity.TERMINATING)
    found = compare(*[pool(0, 4, leaving, JobFacts(JobId("new"), JOE, spec=JobSpec(gpus=4)))] * 2)
    assert [it.after.fate for it in found.jobs] == [Fate.LEAVES, Fate.PROMISED]


def test_gpu_parts_are_summed_before_rounding() -> None:
    jobs = tuple(JobFacts(JobId(f"p{n}"), JOE, fraction=400) for n in range(7))
    shared = replace(pool(0, 0, *jobs), nodes=(replace(node("box", 2), shared=True),))
    found = compare(shared, with_nodes(shared, 2))
    joe = next(it for it in found.projects if it.name == JOE)
    assert joe.before is not None
    assert (joe.before.allocated, joe.before.waiting, joe.before.waiting_gpus) == (2, 3, 2)
    assert found.allocated == (2, 3)


def test_briefly_delayed_claim_counts_as_made() -> None:
    day = replace(running("day", SUSAN, 4, 0), ran_s=30_000.0)
    jobs = (day, JobFacts(JobId("new"), SUSAN, spec=JobSpec(gpus=2)))
    found = compare(*[pool(1, 0, *jobs)] * 2)
    assert [it.after.fate for it in found.jobs] == [Fate.WAITS, Fate.RUNS]
    assert found.jobs[0].after.preempted
    off = replace(pool(1, 0, *jobs), policy=Policy(long_run_s=0))
    assert [it.after.fate for it in compare(off, off).jobs] == [Fate.RUNS, Fate.WAITS]


def test_pools_with_different_jobs_are_not_comparable() -> None:
    one = pool(4, 0, running("old", SUSAN, 4, 0))
    with pytest.raises(InvalidInput, match="same jobs"):
        compare(one, replace(one, jobs=()))


# --------------------------------------------------------------------------- added nodes


def test_added_nodes_match_most_common_node() -> None:
    here = (
        node("a", 8, "A100", cpus=64.0),
        node("b", 4, "H100", cpus=96.0),
        node("c", 8, "A100", ready=False, kept=2),
    )
    grown = with_nodes(Snapshot(here, (), ()), 20)
    new = grown.nodes[3:]
    assert [(len(it.gpus), it.gpu_model, it.cpus) for it in new] == [
        (8, "A100", 64.0), (8, "A100", 64.0), (4, "A100", 64.0),
    ]  # fmt: skip
    assert all(it.ready and not it.kept for it in new)


def test_named_model_decides_size_of_added_nodes() -> None:
    here = (node("a", 8, "A100"), node("b", 4, "H100", cpus=96.0))
    new = with_nodes(Snapshot(here, (), ()), 8, "H100").nodes[2:]
    assert [(len(it.gpus), it.cpus) for it in new] == [(4, 96.0), (4, 96.0)]
    unknown = with_nodes(Snapshot(here, (), ()), 8, "B200", per_node=2).nodes[2:]
    assert [(len(it.gpus), it.gpu_model, it.cpus) for it in unknown] == [(2, "B200", None)] * 4


def test_added_nodes_belong_to_no_known_rack() -> None:
    here = Snapshot((node("a", 2, labels={"rack": "r1"}),), (), (), topology=("rack",))
    (new,) = with_nodes(here, 2).nodes[1:]
    assert new.labels == {"rack": "what-if"}


def test_repeated_addition_adds_different_gpus() -> None:
    twice = with_nodes(with_nodes(Snapshot((), (), ()), 3), 3)
    ids = [gpu for it in twice.nodes for gpu in it.gpus]
    assert len(set(ids)) == len(ids) == 6


# --------------------------------------------------------------------------- any pool


@given(snapshots(elastic=True))
def test_comparison_with_itself_shows_no_change(snapshot: Snapshot) -> None:
    found = compare(snapshot, snapshot)
    assert found.changed == ()
    assert all(project.before == project.after for project in found.projects)


@given(snapshots(elastic=True))
def test_settled_pool_is_at_rest(snapshot: Snapshot) -> None:
    rested = settle(snapshot)
    again = settle(rested.snapshot, 1)
    assert again.snapshot == rested.snapshot
    assert not again.lost


@given(snapshots(elastic=True))
def test_projects_sum_up_their_jobs(snapshot: Snapshot) -> None:
    found = compare(snapshot, with_nodes(snapshot, 2))
    tops = {project.name for project in snapshot.projects if project.parent is None}
    for side in (0, 1):
        now = [[it.before, it.after][side] for it in found.projects if it.name in tops]
        jobs = [[it.before, it.after][side] for it in found.jobs]
        assert sum(it.allocated for it in now if it) == sum(
            it.gpus for it in jobs if it.fate is Fate.RUNS
        )
        assert sum(it.waiting for it in now if it) == sum(it.fate is Fate.WAITS for it in jobs)
        assert sum(it.preempted for it in now if it) == sum(it.preempted for it in jobs)
    assert found.gpus[1] == found.gpus[0] + 2
