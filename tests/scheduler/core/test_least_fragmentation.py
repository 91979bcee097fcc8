"""A single worker is placed where it fragments the pool least for usual workers (R12)."""

from __future__ import annotations

from typing import Any

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


def waits(name: str, **facts: Any) -> JobFacts:
    return JobFacts(JobId(name), VISION, **asking(facts))


def runs(name: str, node: str, *at: int, **facts: Any) -> JobFacts:
    gpus = tuple(GpuId(f"{node}/{gpu}") for gpu in at)
    worker = Worker(NodeName(node), gpus, facts.get("fraction"))
    state = Activity.RUNNING
    return JobFacts(
        JobId(name), VISION, activity=state, held=(worker,), **asking(facts, gpus=len(at))
    )


def place(*jobs: JobFacts, nodes: tuple[Node, ...]) -> Worker:
    """Return the worker of the waiting job that starts."""
    plan = decide(Snapshot(nodes, (Project(VISION, quota=64),), jobs))
    (start,) = [command for command in plan.commands if isinstance(command, Start)]
    return start.workers[0]


def test_cpus_needed_by_free_gpus_stay_free() -> None:
    """Four GPUs of the first node need its 48 cores; the second node has spare cores."""
    nodes = (machine("tight", 5, cpus=60), machine("wide", 2, cpus=100))
    usual = runs("usual", "tight", 0, cpus=12)
    assert place(usual, waits("heavy", gpus=1, cpus=40), nodes=nodes).node == "wide"


def test_cpu_work_goes_where_cpus_serve_no_gpu() -> None:
    nodes = (machine("gpus", 4, cpus=48), machine("rest", 1, cpus=60))
    usual = runs("usual", "gpus", 0, cpus=12)
    assert place(usual, waits("plain", gpus=0, cpus=20), nodes=nodes).node == "rest"


def test_memory_counts_like_cpus() -> None:
    nodes = (machine("tight", 5, memory_gib=80), machine("wide", 2, memory_gib=200))
    usual = runs("usual", "tight", 0, memory_gib=16)
    assert place(usual, waits("heavy", gpus=1, memory_gib=50), nodes=nodes).node == "wide"


def test_gpu_part_fills_least_useful_rest() -> None:
    """The first GPU has 0.5 left, which another half could use; the second GPU has 0.3 left."""
    nodes = (machine("box", 3, shared=True),)
    half = runs("half", "box", 0, fraction=500)
    large = runs("large", "box", 1, fraction=700)
    small = waits("small", fraction=300)
    assert place(half, large, small, nodes=nodes).gpus == ("box/1",)


def test_gpu_part_opens_no_gpu_while_shared_one_fits() -> None:
    nodes = (machine("new", 2, shared=True), machine("box", 2, shared=True))
    half = runs("half", "box", 1, fraction=500)
    assert place(half, waits("more", fraction=400), nodes=nodes).gpus == ("box/1",)


def test_gpu_part_goes_only_to_sharing_nodes() -> None:
    nodes = (machine("whole", 4), machine("shared", 4, shared=True))
    assert place(waits("part", fraction=100), nodes=nodes).node == "shared"


def test_fullest_used_node_wins_tie() -> None:
    nodes = (machine("empty", 4, cpus=64), machine("half", 4, cpus=64), machine("full", 4, cpus=64))
    two, three = runs("two", "half", 0, 1, cpus=1), runs("three", "full", 0, 1, 2, cpus=1)
    assert place(two, three, waits("one", gpus=1, cpus=1), nodes=nodes).node == "full"
