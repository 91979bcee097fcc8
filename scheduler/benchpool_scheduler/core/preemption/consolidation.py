"""Consolidation: free GPUs on one node by moving running jobs, so that no job is stopped (R18).

Free GPUs on several nodes do not help a job that needs them on one node. If jobs of a node fit on
free GPUs elsewhere, they resume there from their checkpoint and the waiting job starts. One node is
cleared at a time, by the same rule as for victims. Units move in the order in which they would be
taken. Units that are not needed stay. Nodes are compared by the highest priority that would have to
move, then by the disturbance. No project loses GPUs, so that shares are not checked. Each move
costs a restart. A job that was paused or moved in the last hour is therefore not moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from benchpool_scheduler.core.capacity.assignment import Assignment
from benchpool_scheduler.core.capacity.free_capacity import NodeCapacity, Savepoint
from benchpool_scheduler.core.capacity.placement import find, reachable
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit, order_of
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import Worker
from benchpool_scheduler.core.preemption.candidates import VictimCandidates
from benchpool_scheduler.core.preemption.disturbance import Disturbance, disturbance_of
from benchpool_scheduler.core.preemption.smallest_set import Group, latest_first, smallest_set

MOST_MOVED = 16
"""Limit on the jobs that move for one waiting job."""

MOST_NODES_TRIED = 32
"""Limit on the nodes tried. The freest nodes are tried first."""


@dataclass(frozen=True, slots=True)
class MovedUnit:
    """A job that leaves its places, and the free places where it resumes."""

    unit: PreemptionUnit
    to: tuple[Worker, ...]


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Places of the claimant on a cleared node, and the moved jobs."""

    assignment: Assignment
    moved: tuple[MovedUnit, ...]


def consolidate(
    state: ClusterState, candidates: VictimCandidates, info: JobInfo, workers: int
) -> Consolidation | None:
    """Clear a node for all of the job's new workers, or return None and change nothing."""
    best: tuple[tuple[int, Disturbance, int], NodeCapacity] | None = None
    for node in _nodes_to_try(state, candidates, info, workers):
        attempt = _Attempt(state, candidates, info, workers, node)
        if attempt.clear():
            if best is None or attempt.cost < best[0]:
                best = attempt.cost, node
            attempt.undo()
    if best is None:
        return None
    attempt = _Attempt(state, candidates, info, workers, best[1])
    attempt.clear()
    return Consolidation(state.capacity.take(info, [best[1]] * workers), tuple(attempt.moved))


def _nodes_to_try(
    state: ClusterState, candidates: VictimCandidates, info: JobInfo, workers: int
) -> list[NodeCapacity]:
    """Return the freest large nodes, if enough GPUs are free in total (R18)."""
    capacity, requirements, gpus = (
        state.capacity,
        info.requirements,
        info.requirements.gpus * workers,
    )
    if (
        len(capacity.nodes) < 2
        or not 0 < gpus <= capacity.largest
        or capacity.free(requirements) < gpus
    ):
        return []
    if state.ledger.bound(info, info.request.times(workers), releasing=False) is not None:
        return []
    within = reachable(info, capacity)
    large = (
        node
        for node in candidates.freest(capacity, requirements)
        if len(node.node.gpus) >= gpus and within >> node.order & 1
    )
    return list(islice(large, MOST_NODES_TRIED))


class _Attempt:
    """Attempt to clear one node."""

    def __init__(
        self,
        state: ClusterState,
        candidates: VictimCandidates,
        info: JobInfo,
        workers: int,
        node: NodeCapacity,
    ) -> None:
        self.state = state
        self.candidates = candidates
        self.info = info
        self.workers = workers
        self.node = node
        self.gone: list[PreemptionUnit] = []
        self.moved: list[MovedUnit] = []
        self._before: Savepoint | None = None

    @property
    def cost(self) -> tuple[int, Disturbance, int]:
        """Return the sort key of the node. The node with the smallest key is cleared."""
        priority = max((unit.info.spec.priority for unit in self.gone), default=0)
        return priority, disturbance_of(self.gone, self.candidates), self.node.order

    def clear(self) -> bool:
        """Move jobs away until the claimant fits, or undo everything and return False."""
        movable = self._movable()
        if not movable:
            return False
        self._before = self.state.changes.savepoint()
        gone = smallest_set(
            self.state,
            self._going(movable),
            self._fits,
            lambda gone: latest_first(self.state, gone, self._fits),
        )
        self.gone = gone or []
        if not self.gone or not all(self._seat_elsewhere(unit) for unit in self.gone):
            self.undo()
            return False
        return True

    def _going(self, movable: list[PreemptionUnit]) -> Iterator[Group]:
        """Yield the units that fit elsewhere now, one by one."""
        found = 0
        for unit in movable:
            if found == MOST_MOVED:
                return
            if self._elsewhere(unit) is not None:
                found += 1
                yield (unit,)

    def _movable(self) -> list[PreemptionUnit]:
        """Return whole jobs on this node alone that may move, in order."""
        found = [
            unit
            for unit in self.candidates.on_node(self.node.node.name)
            if unit.is_gang
            and unit.info.job.id not in self.state.changes.assigned
            and unit.info.age != self.info.age
            and not unit.fresh
            and unit.info.job.checkpoints
            and not unit.info.job.preemptions_last_hour
            and len(unit.workers) == len(unit.info.job.held)
            and all(worker.node == self.node.node.name for worker in unit.workers)
        ]
        return sorted(found, key=lambda unit: order_of(unit, self.candidates.lost(unit)))

    def _elsewhere(self, unit: PreemptionUnit) -> list[NodeCapacity] | None:
        capacity = self.state.capacity
        others = capacity.every & ~(1 << self.node.order)
        return find(unit.info, len(unit.workers), capacity, releasing=False, among=others)

    def _fits(self) -> bool:
        return self.node.slots(self.info.requirements, releasing=True) >= self.workers

    def _seat_elsewhere(self, unit: PreemptionUnit) -> bool:
        places = self._elsewhere(unit)
        if places is None:
            return False
        assignment = self.state.capacity.take(unit.info, places)
        self.moved.append(MovedUnit(unit, assignment.workers))
        return True

    def undo(self) -> None:
        """Undo all moves."""
        self.moved, self.gone = [], []
        if self._before is not None:
            self.state.changes.rollback(self._before)
