"""A job that must leave as a whole gets no worker in the same pass (R10)."""

from __future__ import annotations

from dataclasses import replace

from benchpool_scheduler.core.cluster.invariants import violations
from benchpool_scheduler.core.model import GpuId, JobId, NodeName, Start, Worker
from benchpool_scheduler.core.plan import decide
from benchpool_support.boxes import node, pool_of, project, queued, running
from benchpool_support.plans import preempts


def test_gang_preempted_for_benches_does_not_grow() -> None:
    """R3: benches need both of its GPUs, and a third GPU elsewhere was promised to it."""
    nodes = [node("box", 2, kept=2), node("m", 1)]
    pool = pool_of(nodes, [project("p")], [running("gang", "p", workers=2)])
    gang = replace(
        pool.jobs[0],
        spec=pool.jobs[0].spec.changed(workers=3, min_workers=2),
        is_nominated=True,
        nominated=(Worker(NodeName("m"), (GpuId("m/0"),)),),
    )
    pool = replace(pool, jobs=(gang,))
    plan = decide(pool)
    assert [(one.job, len(one.workers)) for one in preempts(plan)] == [("gang", 2)]
    assert not any(isinstance(command, Start) for command in plan.commands)
    assert violations(pool, plan) == ()


def test_growing_job_is_not_moved_in_same_pass() -> None:
    """R18: the large job waits until a pass in which the small job only moves, or has grown."""
    nodes = [node("a", 3), node("b", 2), node("c", 1)]
    jobs = [
        running("beside", "p", on="b"),
        running("small", "p", on="a", since_checkpoint_s=0.0, ran_s=600.0),
        queued("large", "q", 3),
    ]
    pool = pool_of(nodes, [project("p", 3), project("q", weight=0.0)], jobs)
    small = replace(pool.jobs[1], spec=pool.jobs[1].spec.changed(workers=2, min_workers=1))
    pool = replace(pool, jobs=(pool.jobs[0], small, pool.jobs[2]))
    plan = decide(pool)
    grown = Worker(NodeName("b"), (GpuId("b/1"),))
    assert plan.commands == (Start(JobId("small"), (grown,)),)
    assert violations(pool, plan) == ()
