"""A job may request a node per worker instead of packing (R12)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.core.plan import decide
from benchpool_support.asking import asking

VISION = ProjectName("vision")


def machine(name: str, gpus: int, **facts: Any) -> Node:
    return Node(NodeName(name), tuple(GpuId(f"{name}/{at}") for at in range(gpus)), **facts)


def placed(job: JobFacts, *nodes: Node, others: tuple[JobFacts, ...] = ()) -> Counter[str]:
    plan = decide(Snapshot(nodes, (Project(VISION, quota=64),), (*others, job)))
    starts = [c for c in plan.commands if isinstance(c, Start) and c.job == job.id]
    return Counter(worker.node for start in starts for worker in start.workers)


def gang(workers: int, **facts: Any) -> JobFacts:
    return JobFacts(
        JobId("gang"),
        VISION,
        **asking(facts, workers=workers, min_workers=workers, spread=True),
    )


FOUR = tuple(machine(f"n{at}", 4) for at in range(4))


def test_spread_workers_get_separate_nodes() -> None:
    assert placed(gang(4), *FOUR) == Counter({"n0": 1, "n1": 1, "n2": 1, "n3": 1})


def test_workers_are_packed_by_default() -> None:
    packed = gang(4)
    packed = replace(packed, spec=packed.spec.changed(spread=False))
    assert placed(packed, *FOUR) == Counter({"n0": 4})


def test_all_nodes_get_one_worker_before_second() -> None:
    assert placed(gang(6), *FOUR) == Counter({"n0": 2, "n1": 2, "n2": 1, "n3": 1})


def test_emptiest_node_is_filled_first() -> None:
    busy = JobFacts(
        JobId("busy"),
        VISION,
        spec=JobSpec(gpus=2),
        activity=Activity.RUNNING,
        held=(Worker(NodeName("n0"), (GpuId("n0/0"), GpuId("n0/1"))),),
    )
    assert placed(gang(1), *FOUR, others=(busy,)) == Counter({"n1": 1})


def test_remaining_nodes_take_more_when_nodes_are_full() -> None:
    small = (machine("a", 1), machine("b", 3))
    assert placed(gang(4), *small) == Counter({"a": 1, "b": 3})


def test_growing_job_prefers_unused_nodes() -> None:
    large = (machine("n0", 8), *FOUR[1:])
    held = (Worker(NodeName("n0"), (GpuId("n0/0"),)),)
    job = gang(3)
    spec = job.spec.changed(min_workers=1)
    job = replace(job, spec=spec, activity=Activity.RUNNING, held=held)
    assert placed(job, *large) == Counter({"n1": 1, "n2": 1})


def test_job_is_spread_inside_required_domain() -> None:
    racks = tuple(machine(f"n{at}", 4, labels={"rack": "ab"[at // 2]}) for at in range(4))
    job = gang(4, required_level="rack")
    assert placed(job, *racks) == Counter({"n0": 2, "n1": 2})
