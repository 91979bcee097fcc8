"""Parts of a GPU: at most one GPU in sum, one project per GPU, only on sharing nodes (R1)."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.effects import after
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

NAMES = ("vision", "sound")


@st.composite
def pools(draw: st.DrawFn) -> Snapshot:
    nodes = tuple(
        Node(
            NodeName(f"n{at}"),
            tuple(GpuId(f"n{at}/{gpu}") for gpu in range(draw(st.integers(1, 3)))),
            kept=draw(st.sampled_from([0, 0, 1])),
            cpus=draw(st.sampled_from([None, 4])),
            shared=draw(st.sampled_from([True, True, False])),
        )
        for at in range(draw(st.integers(1, 3)))
    )
    projects = tuple(Project(ProjectName(n), quota=draw(st.integers(0, 3))) for n in NAMES)
    return Snapshot(nodes, projects, tuple(draw(jobs()) for _ in range(3)))


@st.composite
def jobs(draw: st.DrawFn) -> JobFacts:
    fraction = draw(st.sampled_from([None, 100, 250, 400, 500, 600, 900]))
    return JobFacts(
        JobId(f"j{draw(st.integers(0, 10**9))}"),
        ProjectName(draw(st.sampled_from(NAMES))),
        spec=JobSpec(
            gpus=1 if fraction else draw(st.integers(1, 2)),
            priority=draw(st.sampled_from([50, 60])),
            preemptible=draw(st.sampled_from([True, True, False])),
            cpus=draw(st.sampled_from([0, 0, 1])),
        ),
        fraction=fraction,
    )


def check(pool: Snapshot) -> None:
    uses: dict[GpuId, list[tuple[str, int, bool]]] = defaultdict(list)
    shared = {gpu: node.shared for node in pool.nodes for gpu in node.gpus}
    for job in pool.jobs:
        for worker in job.held:
            assert worker.part == job.fraction
            for gpu in worker.gpus:
                uses[gpu].append((job.project, worker.part or 1000, worker.part is not None))
    for gpu, found in uses.items():
        assert sum(part for _, part, _ in found) <= 1000
        assert len({project for project, _, _ in found}) == 1
        assert shared[gpu] or not any(is_part for _, _, is_part in found)
    for node in pool.nodes:
        assert sum(not uses[gpu] for gpu in node.gpus) >= min(node.kept, len(node.gpus))


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(pools(), st.data())
def test_gpu_parts_stay_within_one_gpu_and_project(pool: Snapshot, data: st.DataObject) -> None:
    for _ in range(4):
        plan = decide(pool)
        pool = after(pool, plan)
        check(pool)
        waiting = {job.id for job in pool.jobs if not job.held}
        assert waiting <= set(plan.reasons) | {c.job for c in plan.commands}
        more = tuple(data.draw(jobs()) for _ in range(data.draw(st.integers(0, 3))))
        kept = tuple(job for job in pool.jobs if data.draw(st.booleans()) or not job.held)
        known = {job.id for job in kept}
        new = tuple({job.id: job for job in more if job.id not in known}.values())
        pool = Snapshot(pool.nodes, pool.projects, (*kept, *new))


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(pools())
def test_second_pass_changes_no_gpu_part(pool: Snapshot) -> None:
    first = after(pool, decide(pool))
    settled = after(first, decide(first))
    assert after(settled, decide(settled)) == settled


def test_gpu_part_without_shared_gpus_gets_reason() -> None:
    vision = ProjectName("vision")
    pool = Snapshot(
        (Node(NodeName("n0"), (GpuId("a"),)),),
        (Project(vision, quota=1),),
        (JobFacts(JobId("part"), vision, fraction=500),),
    )
    reason = decide(pool).reasons[JobId("part")]
    assert reason.text == "asks for 0.5 GPUs; no node of the pool has shared GPUs"
    assert reason.remedy.startswith("submit it with a whole GPU")
