"""Making room by moving running work, so that nobody is stopped (R18).

Free GPUs on several nodes are no room for a job that needs them on one. If jobs of that node fit
on what is free elsewhere, they go on there from their checkpoint and the waiting job starts. One
node is cleared at a time, by the same rule as for victims: what is given up first moves first, and
who turns out not to be needed stays. Nodes are compared by the highest priority that would have to
move, then by what is lost. Nobody loses room, so no share is asked about.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from benchpool_scheduler.core.capacity.free_capacity import NodeRoom, Taken
from benchpool_scheduler.core.capacity.placement import find, reachable
from benchpool_scheduler.core.cluster.cluster_state import Board
from benchpool_scheduler.core.cluster.preemption_units import Chunk, order_of
from benchpool_scheduler.core.jobs.job_info import Work
from benchpool_scheduler.core.model import Worker
from benchpool_scheduler.core.preemption.candidates import Givers

MOST_MOVED = 16
"""A job for which more than these would have to move waits instead."""

MOST_NODES_TRIED = 32
"""So many nodes are tried, those that lack least first."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A job that leaves its places, and the free places that it goes on at."""

    chunk: Chunk
    to: tuple[Worker, ...]


@dataclass(frozen=True, slots=True)
class Cleared:
    """A node with room for the claimant: its places there, and who moved away."""

    taken: Taken
    moved: tuple[Moved, ...]


def make_room(board: Board, givers: Givers, work: Work, workers: int) -> Cleared | None:
    """Clear a node for all of the job's new workers; None, and nothing changed, if none can be."""
    best: tuple[tuple[int, float, int], NodeRoom] | None = None
    for node in _nodes_to_try(board, givers, work, workers):
        clearing = _Clearing(board, givers, work, workers, node)
        if clearing.clear():
            if best is None or clearing.cost < best[0]:
                best = clearing.cost, node
            clearing.undo()
    if best is None:
        return None
    clearing = _Clearing(board, givers, work, workers, best[1])
    clearing.clear()
    return Cleared(board.room.take(work, [best[1]] * workers), tuple(clearing.moved))


def _nodes_to_try(board: Board, givers: Givers, work: Work, workers: int) -> list[NodeRoom]:
    """Return the nodes that lack least, where enough is free in all (R18)."""
    room, fit, gpus = board.room, work.fit, work.fit.gpus * workers
    if len(room.nodes) < 2 or not 0 < gpus <= room.largest or room.free(fit) < gpus:
        return []
    if board.ledger.bound(work, work.need.times(workers), soon=False) is not None:
        return []
    within = reachable(work, room)
    large = (
        node
        for node in givers.freest(room, fit)
        if len(node.node.gpus) >= gpus and within >> node.order & 1
    )
    return list(islice(large, MOST_NODES_TRIED))


class _Clearing:
    """One attempt at one node."""

    def __init__(
        self, board: Board, givers: Givers, work: Work, workers: int, node: NodeRoom
    ) -> None:
        self.board = board
        self.givers = givers
        self.work = work
        self.workers = workers
        self.node = node
        self.gone: list[Chunk] = []
        self.moved: list[Moved] = []

    @property
    def cost(self) -> tuple[int, float, int]:
        """Return by what nodes are compared; the smaller is cleared."""
        priority = max((chunk.work.job.priority for chunk in self.gone), default=0)
        return priority, sum(map(self.givers.lost, self.gone)), self.node.order

    def clear(self) -> bool:
        """Move away what is in the way; tell whether the claimant fits, else undo everything."""
        for chunk in self._movable():
            if self._fits() or len(self.gone) == MOST_MOVED:
                break
            if self._elsewhere(chunk) is not None:
                self.board.let_go(chunk)
                self.gone.append(chunk)
        if not self.gone or not self._fits():
            self.undo()
            return False
        self._spare()
        if not all(self._seat_elsewhere(chunk) for chunk in self.gone):
            self.undo()
            return False
        return True

    def _movable(self) -> list[Chunk]:
        """Return whole jobs on this node alone that could go on elsewhere, first to go first."""
        found = [
            chunk
            for chunk in self.givers.on_node(self.node.node.name)
            if chunk.core
            and chunk.work.age != self.work.age
            and not chunk.fresh
            and chunk.work.job.checkpoints
            and len(chunk.workers) == len(chunk.work.job.held)
            and all(worker.node == self.node.node.name for worker in chunk.workers)
        ]
        return sorted(found, key=lambda chunk: order_of(chunk, self.givers.lost(chunk)))

    def _elsewhere(self, chunk: Chunk) -> list[NodeRoom] | None:
        room = self.board.room
        return find(chunk.work, len(chunk.workers), room, soon=False, but=self.node, anywhere=True)

    def _fits(self) -> bool:
        return self.node.slots(self.work.fit, soon=True) >= self.workers

    def _spare(self) -> None:
        for chunk in self.gone[::-1]:
            self.board.hold_again(chunk)
            if self._fits():
                self.gone.remove(chunk)
            else:
                self.board.let_go(chunk)

    def _seat_elsewhere(self, chunk: Chunk) -> bool:
        places = self._elsewhere(chunk)
        if places is None:
            return False
        taken = self.board.room.take(chunk.work, places)
        self.moved.append(Moved(chunk, taken.workers))
        return True

    def undo(self) -> None:
        """Everybody is where they were."""
        for moved in reversed(self.moved):
            for worker in moved.to:
                self.board.room.give_back(moved.chunk.work, worker)
        for chunk in reversed(self.gone):
            self.board.hold_again(chunk)
        self.moved, self.gone = [], []
