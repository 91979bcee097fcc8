"""A job uses no excluded node: its volume is elsewhere, or the node did not take it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchpool_scheduler.contract.spec import JobSpec
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
    ReasonCode,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.core.plan import decide
from benchpool_support.asking import asking

LAB, OTHER = ProjectName("lab"), ProjectName("other")
PROJECTS = (Project(LAB, quota=4), Project(OTHER, quota=0))


def machine(name: str, gpus: int = 4, **facts: Any) -> Node:
    return Node(NodeName(name), tuple(GpuId(f"{name}/{at}") for at in range(gpus)), **facts)


def names(*which: str) -> frozenset[NodeName]:
    return frozenset(NodeName(name) for name in which)


A, B = machine("a"), machine("b")


def where(job: JobFacts, *nodes: Node, others: tuple[JobFacts, ...] = ()) -> list[str]:
    plan = decide(Snapshot(nodes, PROJECTS, (*others, job)))
    starts = [c for c in plan.commands if isinstance(c, Start) and c.job == job.id]
    return sorted(worker.node for start in starts for worker in start.workers)


@pytest.mark.parametrize("out", [{"only": names("b")}, {"barred": names("a")}], ids=str)
@pytest.mark.parametrize("more", [{}, {"spread": True}, {"gpus": 4}, {"cpus": 1.0}], ids=str)
def test_job_starts_only_on_allowed_nodes(out: dict[str, Any], more: dict[str, Any]) -> None:
    job = JobFacts(JobId("j"), LAB, **out, **asking(more))
    assert where(job, A, B) == ["b"]
    assert where(job, machine("a", cpus=8.0), machine("b", cpus=8.0)) == ["b"]


def test_gang_with_one_excluded_node_takes_remaining_nodes() -> None:
    gang = JobFacts(
        JobId("g"), LAB, spec=JobSpec(gpus=2, workers=2, min_workers=2), barred=names("a")
    )
    assert where(gang, A, B) == ["b", "b"]


def test_excluded_node_causes_no_preemption() -> None:
    held = tuple(Worker(A.name, (gpu,)) for gpu in A.gpus)
    runs = JobFacts(
        JobId("o"),
        OTHER,
        spec=JobSpec(workers=4, min_workers=4),
        activity=Activity.RUNNING,
        held=held,
    )
    claim = JobFacts(JobId("j"), LAB, barred=names("a"))
    full = replace(B, gpus=())
    plan = decide(Snapshot((A, full), PROJECTS, (runs, claim)))
    assert not [c for c in plan.commands if isinstance(c, Preempt)]
    allowed = decide(Snapshot((A, full), PROJECTS, (runs, replace(claim, barred=frozenset()))))
    assert [c.job for c in allowed.commands if isinstance(c, Preempt)] == ["o"]


def test_reason_names_excluded_nodes_instead_of_impossibility() -> None:
    job = JobFacts(JobId("j"), LAB, spec=JobSpec(gpus=4), only=names("b"))
    plan = decide(Snapshot((A, machine("b", 2)), PROJECTS, (job,)))
    reason = plan.reasons[job.id]
    assert reason.code is ReasonCode.NODES_EXCLUDED
    assert reason.numbers == {"asked": 4, "nodes": 1, "of": 2}


def test_too_large_job_is_impossible_despite_excluded_nodes() -> None:
    job = JobFacts(JobId("j"), LAB, spec=JobSpec(gpus=5), only=names("b"))
    plan = decide(Snapshot((A, B), (Project(LAB, quota=9),), (job,)))
    assert plan.reasons[job.id].code is ReasonCode.LARGER_THAN_NODE
