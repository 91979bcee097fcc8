"""Submit and every pass agree on whether a job can ever run (R22)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.explain.never import EmptyPool
from benchpool_scheduler.core.model import (
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
)
from benchpool_scheduler.core.plan import decide
from benchpool_support.examples import examples


@settings(max_examples=examples(100), deadline=None)
@given(
    gpus=st.integers(1, 9),
    workers=st.integers(1, 4),
    cpus=st.sampled_from([0.0, 2.0, 9.0]),
    models=st.sampled_from([(), ("A100",), ("H100",)]),
    preemptible=st.booleans(),
    limit=st.sampled_from([None, 3]),
)
def test_job_accepted_at_submit_is_possible_in_pass(
    gpus: int,
    workers: int,
    cpus: float,
    models: tuple[str, ...],
    preemptible: bool,
    limit: int | None,
) -> None:
    nodes = [
        Node(
            NodeName(name),
            tuple(GpuId(f"{name}{i}") for i in range(size)),
            cpus=8.0,
            gpu_model="A100",
        )
        for name, size in (("a", 4), ("b", 2))
    ]
    projects = [Project(ProjectName("p"), quota=4, limit=limit)]
    spec = JobSpec(
        gpus=gpus, workers=workers, cpus=cpus, gpu_models=models, preemptible=preemptible
    )
    job = JobFacts(JobId("j"), ProjectName("p"), spec)
    never = EmptyPool(nodes, projects).why_never(job)
    plan = decide(Snapshot(nodes=tuple(nodes), projects=tuple(projects), jobs=(job,)))
    assert (never is None) == bool(plan.commands)
    if never is not None:
        assert never == plan.reasons[JobId("j")]
