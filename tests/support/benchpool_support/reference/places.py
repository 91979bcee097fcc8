"""Possible places of workers, found by counting on every node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from benchpool_scheduler.core.model import Activity, GpuId, JobFacts, Node, Snapshot
from benchpool_support.reference.holdings import (
    need,
    occupied,
    within_bounds,
)


@dataclass(frozen=True, slots=True)
class Space:
    """Free resources of one node, or None for an unbounded resource."""

    node: Node
    gpus: int
    cpus: Fraction | None
    memory: Fraction | None

    def slots(self, job: JobFacts) -> int:
        """Return the number of workers of the job that fit; whole GPUs only."""
        wanted = need(job)
        fits = [10**6]
        for free, asked in zip((self.gpus, self.cpus, self.memory), wanted, strict=True):
            if asked and free is not None:
                fits.append(int(free // asked))
        return max(0, min(fits))


def spaces(snapshot: Snapshot) -> list[Space]:
    """Return the free space of every ready node, less benches and promises (R1, R3, R20)."""
    taken: dict[GpuId, None] = {}
    loads: dict[str, list[JobFacts]] = {}
    for job in snapshot.jobs:
        for worker in occupied(job):
            taken |= dict.fromkeys(worker.gpus)
            loads.setdefault(worker.node, []).append(job)
    found: list[Space] = []
    for node in snapshot.nodes:
        if node.ready:
            jobs = loads.get(node.name, [])
            free = sum(gpu not in taken for gpu in node.gpus)
            cpus = None if node.cpus is None else _left(node.cpus, 1000, [need(j)[1] for j in jobs])
            memory = node.memory_gib
            left = None if memory is None else _left(memory, 1024, [need(j)[2] for j in jobs])
            found.append(Space(node, max(0, free - node.kept), cpus, left))
    return found


def _left(whole: float, parts: int, loads: Sequence[Fraction]) -> Fraction:
    return Fraction(round(whole * parts), parts) - sum(loads, Fraction(0))


def domain(node: Node, level: str, topology: Sequence[str]) -> tuple[str, ...] | None:
    """Return the labels of the node's domain at a level, or None if the node has no such label."""
    if level == "node":
        return (node.name,)
    if level not in node.labels:
        return None
    wider = topology[: topology.index(level)] if level in topology else ()
    return (*(node.labels.get(name, "") for name in wider), node.labels[level])


def allowed(snapshot: Snapshot, job: JobFacts) -> Iterator[list[Space]]:
    """Yield the sets of nodes each of which could hold the whole gang (R12, R13)."""
    level = job.spec.required_level
    usable = [
        space
        for space in spaces(snapshot)
        if not job.spec.gpu_models or space.node.gpu_model in job.spec.gpu_models
    ]
    if level is None:
        yield usable
        return
    held = {domain(_node(snapshot, w.node), level, snapshot.topology) for w in job.held}
    names = {domain(space.node, level, snapshot.topology) for space in usable} - {None}
    for name in sorted(name for name in names if name is not None and (not held or name in held)):
        yield [s for s in usable if domain(s.node, level, snapshot.topology) == name]


def _node(snapshot: Snapshot, name: str) -> Node:
    return next(node for node in snapshot.nodes if node.name == name)


def room_for(snapshot: Snapshot, job: JobFacts) -> int:
    """Return the maximum number of workers of the job that could be placed together now."""
    return max((sum(s.slots(job) for s in choice) for choice in allowed(snapshot, job)), default=0)


def startable(snapshot: Snapshot, job: JobFacts, workers: int) -> bool:
    """Return whether this many more workers could start now, by places and bounds (R8-R10)."""
    return room_for(snapshot, job) >= workers and within_bounds(snapshot, job, workers)


def possible(snapshot: Snapshot, job: JobFacts) -> bool:
    """Return whether the job could start on the ready nodes of an empty pool."""
    alone = replace(job, activity=Activity.QUEUED, held=(), is_nominated=False, nominated=())
    return startable(replace(snapshot, jobs=(alone,)), alone, job.spec.least_workers)
