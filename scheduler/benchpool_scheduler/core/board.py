"""The state of one pass: who holds what, what is free, and what has been decided so far.

Made from a snapshot at the start of a pass and dropped at its end; nothing outside the core sees
it. Every change goes through the methods here, so that ledger and room always agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchpool_scheduler.core.amounts import Amounts, exact
from benchpool_scheduler.core.feasibility import possible
from benchpool_scheduler.core.ledger import Ledger
from benchpool_scheduler.core.model import Activity, JobId, Node, Snapshot, Worker
from benchpool_scheduler.core.ordering import Standing
from benchpool_scheduler.core.room import Room, Taken
from benchpool_scheduler.core.shares import fair_shares
from benchpool_scheduler.core.tree import Tree
from benchpool_scheduler.core.works import Work, demands_of, works_of


@dataclass(slots=True)
class Decided:
    """What the pass decided for one job: the workers it gets, in the order of its decisions."""

    work: Work
    parts: list[Taken] = field(default_factory=list)

    def starts(self) -> Iterator[Taken]:
        """Yield what starts now and what must wait; nothing starts before the first of it."""
        now = [part for part in self.parts if not part.after]
        later = [part for part in self.parts if part.after]
        if self.parts[0].after:
            now, later = [], self.parts
        for parts in (now, later):
            workers = tuple(worker for part in parts for worker in part.workers)
            if workers:
                after = dict.fromkeys(job for part in parts for job in part.after)
                yield Taken(workers, tuple(after))

    @property
    def waits(self) -> Taken | None:
        """Return the start of its first workers, when others must leave before it."""
        first = next(self.starts())
        return first if first.after else None


@dataclass(frozen=True, slots=True)
class Chunk:
    """What can be taken from a job in one piece: one surplus worker, or its whole core.

    Attributes:
        lost: GPU seconds of progress and restart that this costs (R18).
        fresh: It was started in this very pass, so nobody is stopped by taking it.
    """

    work: Work
    workers: tuple[Worker, ...]
    core: bool
    lost: float
    fresh: bool = False

    @property
    def amounts(self) -> Amounts:
        """Return what it holds."""
        return self.work.need.times(len(self.workers))

    @property
    def order(self) -> tuple[int, bool, float, int]:
        """Return what is given up first inside a project: the smallest."""
        return self.work.job.priority, self.core, self.lost, -self.work.age


class Board:
    """The pool during a pass."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.policy = snapshot.policy
        self.topology = snapshot.topology
        self.tree = Tree(snapshot.projects)
        self.works = works_of(snapshot, self.tree)
        self.empty = Room(snapshot.nodes, [])
        self._possible: dict[tuple[object, ...], bool] = {}
        self.asking = [w for w in self.works if not w.queued or self.possible(w)]
        self.demands = demands_of(self.works, self.tree, self.asking)
        self.total = _total(snapshot.nodes, self.demands)
        self.ledger = Ledger(self.tree, self.works)
        self.room = Room(snapshot.nodes, self.works)
        shares = fair_shares(self.tree, self.total, self.demands, self.policy.usage_weight)
        self.standing = Standing(self.tree, shares, self.total, self.ledger)
        self.decided: dict[JobId, Decided] = {}

    def possible(self, work: Work) -> bool:
        """Tell whether the job could run in an empty pool; one that never can asks for nothing."""
        known = self._possible.get(work.shape)
        if known is None:
            known = possible(work, self.empty, self.tree, self.topology)
            self._possible[work.shape] = known
        return known

    def start(self, work: Work, taken: Taken) -> None:
        """Book workers that the job gets."""
        self.decided.setdefault(work.job.id, Decided(work)).parts.append(taken)
        self.ledger.add(work, work.need.times(len(taken.workers)))

    def let_go(self, chunk: Chunk) -> None:
        """Take a chunk from its job: its GPUs are soon free, or free when it was fresh."""
        if chunk.fresh:
            self.ledger.remove(chunk.work, chunk.amounts)
            for worker in chunk.workers:
                self.room.give_back(chunk.work, worker)
            return
        self.ledger.let_go(chunk.work, chunk.amounts)
        for worker in chunk.workers:
            self.room.let_go(chunk.work, worker)

    def hold_again(self, chunk: Chunk) -> None:
        """Take back ``let_go``."""
        if chunk.fresh:
            self.ledger.add(chunk.work, chunk.amounts)
            for worker in chunk.workers:
                self.room.occupy(chunk.work, worker)
            return
        self.ledger.hold_again(chunk.work, chunk.amounts)
        for worker in chunk.workers:
            self.room.hold_again(chunk.work, worker)

    def undo_start(self, chunk: Chunk) -> None:
        """Forget a start of this pass whose chunk was let go."""
        entry = self.decided[chunk.work.job.id]
        entry.parts = [part for part in entry.parts if part.workers != chunk.workers]
        if not entry.parts:
            del self.decided[chunk.work.job.id]

    def leaving_below(self, index: int) -> list[JobId]:
        """Return the jobs of a snapshot that are leaving from a project or below it."""
        return [
            work.job.id
            for work in self.works
            if work.job.activity is Activity.TERMINATING and index in work.branch.path
        ]


def _total(nodes: tuple[Node, ...], demands: list[Amounts]) -> Amounts:
    """Return what train may use in all; where a node has no bound, all that is asked for."""
    ready = [node for node in nodes if node.ready]
    gpus = sum(max(0, len(node.gpus) - node.kept) for node in ready)
    asked = sum(demands, Amounts())
    cpus = memory = 0
    for node in ready:
        bounds = exact(node.cpus or 0, node.memory_gib or 0)
        cpus += asked.cpus if node.cpus is None else bounds[0]
        memory += asked.memory if node.memory_gib is None else bounds[1]
    return Amounts(gpus, cpus, memory)
