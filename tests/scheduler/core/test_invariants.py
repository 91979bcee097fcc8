"""Detection of rule violations from the plan and the snapshot alone (R1, R8, R10)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchpool_scheduler.core.cluster.invariants import violations
from benchpool_scheduler.core.model import (
    Command,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Plan,
    Preempt,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.core.plan import decide
from benchpool_support.boxes import box, node, pool_of, project, queued, running

BOX = NodeName("box")


def on(*gpus: int, name: NodeName = BOX, part: int | None = None) -> Worker:
    return Worker(name, tuple(GpuId(f"{name}/{gpu}") for gpu in gpus), part)


def start(job: str, *workers: Worker, after: tuple[str, ...] = ()) -> Start:
    return Start(JobId(job), workers, tuple(map(JobId, after)))


def preempt(job: str, *workers: Worker) -> Preempt:
    return Preempt(JobId(job), workers, None, "R15", 0.0)


def violated(pool: Snapshot, *commands: Command) -> list[str]:
    return [str(found) for found in violations(pool, Plan(commands, {}, {}))]


TWO_WAIT = box(2, [project("a", 2)], [queued("one", "a"), queued("two", "a")])
ONE_RUNS = box(2, [project("a", 2)], [running("old", "a"), queued("new", "a")])
GANG = box(4, [project("a", 4)], [queued("gang", "a", workers=3, min_workers=2)])


def test_gpu_assigned_twice_is_detected() -> None:
    assert violated(TWO_WAIT, start("one", on(0)), start("two", on(0))) == [
        "R1: GPU box/0 on node box would be held by one and two"
    ]


def test_gpu_of_staying_job_is_detected() -> None:
    assert violated(ONE_RUNS, start("new", on(0), after=("old",))) == [
        "R1: GPU box/0 on node box would be held by old and new"
    ]


def test_start_without_waiting_for_holder_is_detected() -> None:
    leaves = preempt("old", on(0))
    assert violated(ONE_RUNS, leaves, start("new", on(0), after=("old",))) == []
    assert violated(ONE_RUNS, leaves, start("new", on(0))) == [
        "R1: new would start on box before old leaves"
    ]


def test_missing_gpu_is_detected() -> None:
    assert violated(TWO_WAIT, start("one", on(7))) == ["R1: one would get box/7 of node box"]
    elsewhere = on(0, name=NodeName("gone"))
    assert violated(TWO_WAIT, start("one", elsewhere)) == ["R1: one would get gone/0 of node gone"]


def test_unready_node_is_detected() -> None:
    nodes = tuple(replace(one, ready=False) for one in TWO_WAIT.nodes)
    assert violated(replace(TWO_WAIT, nodes=nodes), start("one", on(0))) == [
        "R1: one would get box/0 of node box"
    ]


def test_gpu_parts_share_up_to_whole() -> None:
    pool = box(
        1,
        [project("a", 2), project("b", 2)],
        [queued("half", "a", fraction=500), queued("more", "a", fraction=600)],
    )
    other = replace(pool.jobs[1], project=pool.projects[1].name, fraction=500)
    half, more = start("half", on(0, part=500)), start("more", on(0, part=600))
    twice = "R1: GPU box/0 on node box would be held by half and more"
    assert violated(pool, half) == []
    assert violated(pool, half, more) == [twice]
    of_two = replace(pool, jobs=(pool.jobs[0], other))
    assert violated(of_two, half, start("more", on(0, part=500))) == [twice]


@pytest.mark.parametrize(("cpus", "gib"), [(3, 64), (64, 3)])
def test_cpu_or_memory_overcommit_is_detected(cpus: int, gib: int) -> None:
    jobs = [queued(name, "a", cpus=2, memory_gib=2) for name in ("one", "two")]
    pool = pool_of([node("box", 2, cpus=cpus, memory_gib=gib)], [project("a", 2)], jobs)
    assert violated(pool, start("one", on(0))) == []
    what = "4 CPUs" if cpus == 3 else "4 GiB of memory"
    assert violated(pool, start("one", on(0)), start("two", on(1))) == [
        f"R1: {what} of node box would be held, more than it has"
    ]


def test_gang_below_minimum_is_detected() -> None:
    assert violated(GANG, start("gang", on(0), on(1))) == []
    assert "R10: gang would have 1 worker, its minimum is 2" in violated(GANG, start("gang", on(0)))


def test_gang_above_maximum_is_detected() -> None:
    assert violated(GANG, start("gang", *(on(gpu) for gpu in range(4)))) == [
        "R10: gang would have 4 workers, its maximum is 3"
    ]


def test_gang_cut_below_minimum_is_detected() -> None:
    pool = box(4, [project("a")], [running("gang", "a", workers=3, min_workers=2)])
    assert violated(pool, preempt("gang", on(2))) == []
    assert violated(pool, preempt("gang", on(1), on(2))) == [
        "R10: gang would have 1 worker, its minimum is 2"
    ]
    assert violated(pool, preempt("gang", on(0), on(1), on(2))) == []


def test_gang_started_in_two_parts_is_detected() -> None:
    """Its second part may wait for victims, but its smallest gang must not be split for that."""
    pool = box(
        4, [project("a")], [queued("gang", "a", workers=2, min_workers=2), running("old", "a")]
    )
    second = start("gang", on(0), after=("old",))
    found = violated(pool, preempt("old", on(0)), start("gang", on(1)), second)
    assert found == ["R10: gang would start with 1 worker"]


def test_restart_without_leaving_is_detected() -> None:
    pool = box(2, [project("a")], [running("gang", "a", workers=1, min_workers=1)])
    leaves = preempt("gang", on(0))
    assert violated(pool, leaves, start("gang", on(1), after=("gang",))) == []
    assert violated(pool, leaves, start("gang", on(1))) == [
        "R10: gang would start workers before its old ones have left"
    ]


@pytest.mark.parametrize("above", [True, False])
def test_exceeded_limit_is_detected_at_every_level(above: bool) -> None:
    limit = {"limit": 1}
    projects = [
        project("lab", 2, **(limit if above else {})),
        project("a", 2, parent="lab", **({} if above else limit)),
    ]
    pool = box(2, projects, [queued("one", "a"), queued("two", "a")])
    assert violated(pool, start("one", on(0))) == []
    assert violated(pool, start("one", on(0)), start("two", on(1))) == [
        f"R8: {'lab' if above else 'a'} would hold 2 GPUs, above its limit"
    ]


def test_non_preemptible_work_above_quota_is_detected() -> None:
    firm: list[JobFacts] = [queued(name, "a", preemptible=False) for name in ("one", "two")]
    pool = box(2, [project("a", 1)], firm)
    assert violated(pool, start("one", on(0))) == []
    assert violated(pool, start("one", on(0)), start("two", on(1))) == [
        "R8: a would hold 2 GPUs, above its quota, with work that may not be paused"
    ]


def test_violations_before_plan_are_not_reported() -> None:
    """A lowered limit, or a gang with a raised minimum: both may approach the new value."""
    gang = running("gang", "a", workers=3, min_workers=1)
    pool = box(4, [project("a", limit=1)], [gang])
    assert violated(pool, preempt("gang", on(2))) == []
    raised = replace(pool.jobs[0], spec=pool.jobs[0].spec.changed(workers=5, min_workers=5))
    pool = replace(pool, projects=(project("a"),), jobs=(raised,))
    assert violated(pool, start("gang", on(3))) == []


def test_move_and_core_plan_pass_checks() -> None:
    pool = pool_of(
        [Node(NodeName("n"), (GpuId("n/0"), GpuId("n/1"))), node("m", 1)],
        [project("a", 3)],
        [running("small", "a", on="n", since_checkpoint_s=0.0), queued("large", "a", 2)],
    )
    plan = decide(pool)
    assert any(isinstance(one, Start) and one.job in one.after for one in plan.commands)
    assert violations(pool, plan) == ()
