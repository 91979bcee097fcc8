"""Free GPUs of every node, kept between passes: those free now, and those *releasing*.

A GPU of a leaving job is releasing. It may be promised to an attempt to preempt, but a plain start
may not use it. GPUs kept for benches are not counted (R3).

Facts (``seat``, ``unseat``) are permanent. Decisions of a pass (``take``, ``release``) are recorded
in the journal, so that ``rollback`` undoes them. The cost of each does not depend on the size of
the pool. Sets of nodes are kept as bits: by number of free GPUs, by model, in use or not. A place
is found by intersecting such sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchpool_scheduler.core.capacity.allowed_nodes import AllowedNodes, may_use
from benchpool_scheduler.core.capacity.assignment import Assignment, Departure
from benchpool_scheduler.core.capacity.bits import lowest, members, set_of
from benchpool_scheduler.core.capacity.buckets import Buckets
from benchpool_scheduler.core.capacity.choice import choose_worker
from benchpool_scheduler.core.capacity.domains import TopologyLevels
from benchpool_scheduler.core.capacity.fragmentation import UsualWorkers, state_of
from benchpool_scheduler.core.capacity.indexes import Indexes, Mark, asked, slots_of
from benchpool_scheduler.core.capacity.node_capacity import PLENTY, NodeCapacity
from benchpool_scheduler.core.jobs.job_info import JobInfo, Requirements
from benchpool_scheduler.core.journal import Journal
from benchpool_scheduler.core.model import JobId, Node, NodeName, Worker

__all__ = ["PLENTY", "FreeCapacity", "NodeCapacity"]


Change = Callable[[NodeCapacity, JobInfo, Worker], object]
"""Change that one worker of a job makes on its node."""

Savepoint = tuple[int, Mark]
"""Position in the journal, and in the log of changed nodes."""


class FreeCapacity:
    """Free capacity of all ready nodes, in the order of the snapshot.

    Attributes:
        every: All ready nodes, as a set of their orders.
        used: The nodes with at least one worker, as a set of their orders.
        by_free: The nodes by number of free whole GPUs: now, and with those releasing.
        levels: Topology levels of the pool.
        allowed: Returns the nodes that a worker may use, see ``AllowedNodes.nodes_for``.
        largest: GPUs of the largest node.
        homes: Node where this pass has put the first worker of a job.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        topology: Sequence[str] = (),
        journal: Journal | None = None,
    ) -> None:
        self.journal = journal or Journal()
        self.topology = topology
        self.nodes = [NodeCapacity(node, order) for order, node in enumerate(nodes) if node.ready]
        self.by_name: Mapping[NodeName, NodeCapacity] = {n.node.name: n for n in self.nodes}
        self.every = set_of(n.order for n in self.nodes)
        self.used = 0
        self.levels = TopologyLevels([(n.order, n.node) for n in self.nodes], topology)
        most = max((len(n.node.gpus) for n in self.nodes), default=0)
        self.by_free = (self._buckets(most), self._buckets(most))
        self._by_order = {n.order: n for n in self.nodes}
        self.allowed = AllowedNodes(self.nodes, self.every).nodes_for
        self._indexes = Indexes(self.nodes)
        self.homes: dict[JobId, NodeName] = {}
        self.largest = max((len(node.node.gpus) for node in self.nodes), default=0)
        self._cpus_bound = any(n.cpus_bound for n in self.nodes)
        self._memory_bound = any(n.memory_bound for n in self.nodes)
        self._shared = any(n.node.shared for n in self.nodes)
        self._lends = any(n.node.lent for n in self.nodes)
        self._mixed = self._shared or self._cpus_bound or self._memory_bound
        self.usual = UsualWorkers()

    def _buckets(self, most: int) -> Buckets:
        orders: list[list[int]] = [[] for _ in range(most + 1)]
        for node in self.nodes:
            orders[node.free].append(node.order)
        return Buckets(set_of(found) for found in orders)

    # ----------------------------------------------------------------- facts

    def renew(self, node: Node) -> None:
        """Replace a node whose GPUs or kept GPUs have changed. It must have no seated workers."""
        if (known := self.by_name.get(node.name)) is None:
            return
        now, releasing = known.free, known.free_releasing
        known.renew(node)
        self._lends = self._lends or node.lent > 0
        self.largest = max(self.largest, len(node.gpus))
        for buckets, before, after in zip(
            self.by_free, (now, releasing), (known.free, known.free_releasing), strict=True
        ):
            buckets.extend([0] * (after + 1 - len(buckets)))
            buckets.move(1 << known.order, before, after)
        self._indexes.changed(known)

    def seat(self, info: JobInfo, workers: Sequence[Worker], *, leaving: bool = False) -> None:
        """Record that a job holds these workers, or is leaving them. Unknown nodes are skipped."""
        for worker in workers:
            self._apply(NodeCapacity.seat, info, worker)
        if leaving:
            for worker in workers:
                self._apply(NodeCapacity.release, info, worker)
        self._note(info.requirements, len(workers))

    def unseat(self, info: JobInfo, workers: Sequence[Worker], *, leaving: bool = False) -> None:
        """Record that a job no longer holds these workers.

        Args:
            leaving: The job was leaving them.
        """
        if leaving:
            for worker in workers:
                self._apply(NodeCapacity.hold, info, worker)
        for worker in workers:
            self._apply(NodeCapacity.unseat, info, worker)
        self._note(info.requirements, -len(workers))

    def _note(self, requirements: Requirements, workers: int) -> None:
        if self._mixed:
            self.usual.note(requirements, workers)

    # ----------------------------------------------------------------- decisions

    def take(self, info: JobInfo, places: Iterable[NodeCapacity]) -> Assignment:
        """Assign GPUs to one worker at each place: free GPUs first, then those of leaving jobs."""
        workers: list[Worker] = []
        after: dict[Departure, None] = {}
        requirements = info.requirements
        for node in places:
            rest = None
            if requirements.part:
                self.usual.version()
                rest = self.usual.rest(state_of(node), requirements)
            worker = choose_worker(node, requirements, rest)
            after.update(dict.fromkeys(self._assign(node, info, worker)))
            workers.append(worker)
        return Assignment(tuple(workers), tuple(after))

    def take_nominated(self, info: JobInfo, nominated: Sequence[Worker]) -> Assignment | None:
        """Assign exactly the places promised to a job, or return None if they are not available."""
        wanted: dict[NodeName, list[Worker]] = {}
        for worker in nominated:
            wanted.setdefault(worker.node, []).append(worker)
        for name, workers in wanted.items():
            node = self.by_name.get(name)
            if node is None or node.slots(info.requirements, releasing=True) < len(workers):
                return None
            if not node.can_give(info.requirements, workers):
                return None
        after: dict[Departure, None] = {}
        for worker in nominated:
            node = self.by_name[worker.node]
            after.update(dict.fromkeys(self._assign(node, info, worker)))
        return Assignment(tuple(nominated), tuple(after))

    def assign(self, info: JobInfo, worker: Worker) -> None:
        """Assign this worker to a job. Its GPUs must be free for the job."""
        self._assign(self.by_name[worker.node], info, worker)

    def _assign(self, node: NodeCapacity, info: JobInfo, worker: Worker) -> list[Departure]:
        after = node.assign(info, worker)
        self._changed(node)
        self.journal.record((FreeCapacity._apply, self, NodeCapacity.unassign, info, worker))
        return after

    def unassign(self, info: JobInfo, worker: Worker) -> None:
        """Remove a worker that this pass gave to a job."""
        self._apply(NodeCapacity.unassign, info, worker)
        self.journal.record((FreeCapacity._apply, self, NodeCapacity.assign, info, worker))

    def release(self, info: JobInfo, worker: Worker) -> None:
        """Let a seated worker leave in this pass."""
        self._apply(NodeCapacity.release, info, worker)
        self.journal.record((FreeCapacity._apply, self, NodeCapacity.hold, info, worker))

    def hold(self, info: JobInfo, worker: Worker) -> None:
        """Let a leaving worker stay."""
        self._apply(NodeCapacity.hold, info, worker)
        self.journal.record((FreeCapacity._apply, self, NodeCapacity.release, info, worker))

    def _apply(self, change: Change, info: JobInfo, worker: Worker) -> None:
        if (node := self.by_name.get(worker.node)) is not None:
            change(node, info, worker)
            self._changed(node)

    # ----------------------------------------------------------------- rollback

    def savepoint(self) -> Savepoint:
        """Return the present state as a savepoint for ``rollback``."""
        return self.journal.savepoint(), self._indexes.mark()

    def rollback(self, savepoint: Savepoint) -> None:
        """Undo the changes of this pass since a savepoint."""
        changes, mark = savepoint
        self.journal.rollback(changes)
        self._indexes.back_to(mark)

    # ----------------------------------------------------------------- queries

    def home(self, info: JobInfo) -> NodeName | None:
        """Return the node of a job's first worker, now or after this pass, or None."""
        held = info.job.held
        return self.homes.get(info.job.id) or (held[0].node if held else None)

    def may_use(self, requirements: Requirements, node: NodeName) -> bool:
        """Return whether a job with these requirements may use the node, whatever is free."""
        found = self.by_name.get(node)
        return found is not None and may_use(found, requirements.models, requirements)

    def acceptable(self, requirements: Requirements) -> list[NodeCapacity]:
        """Return the nodes that a job with these requirements may use, whatever is free."""
        return [n for n in self.nodes if may_use(n, requirements.models, requirements)]

    def free(self, requirements: Requirements, *, releasing: bool = False) -> int:
        """Return the number of free whole GPUs for these requirements."""
        if self._bounded(requirements):
            return sum(
                n.open_gpus(requirements, releasing=releasing)
                for n in self.acceptable(requirements)
            )
        return self.by_free[releasing].gpus(self.allowed(requirements))

    def unclaimed(self) -> int:
        """Return the number of releasing whole GPUs that are not promised yet."""
        return self.by_free[True].gpus(self.every) - self.by_free[False].gpus(self.every)

    def most_free(self, requirements: Requirements) -> int:
        """Return the largest number of GPUs that are free now on one allowed node."""
        if self._bounded(requirements):
            return max(
                (n.open_gpus(requirements) for n in self.acceptable(requirements)), default=0
            )
        nodes, buckets = self.allowed(requirements), self.by_free[False]
        return next((k for k in range(len(buckets) - 1, 0, -1) if buckets[k] & nodes), 0)

    def freest(self, requirements: Requirements, *, releasing: bool) -> Iterator[NodeCapacity]:
        """Yield the allowed nodes, those with the most free GPUs first, then by order."""
        nodes = self.allowed(requirements)
        for found in self.by_free[releasing][::-1]:
            for order in members(found & nodes):
                yield self._by_order[order]

    def at(self, order: int) -> NodeCapacity:
        """Return the node with this order."""
        return self._by_order[order]

    def slots(self, requirements: Requirements, nodes: int, *, releasing: bool) -> dict[int, int]:
        """Return the nodes, as sets, by how many workers of this request each can hold."""
        if self.only_gpus_bind(requirements):
            sets = self._by_gpus(requirements.gpus, releasing=releasing)
        else:
            sets = self._by_slots(requirements, releasing=releasing)
        return {slots: some for slots, found in sets.items() if (some := found & nodes)}

    def _by_slots(self, requirements: Requirements, *, releasing: bool) -> dict[int, int]:
        """Return the nodes by the workers that each can hold, if not only whole GPUs decide."""
        indexes = self._indexes

        def by_state() -> dict[int, int]:
            sets: dict[int, int] = {}
            known = indexes.sets(("room", releasing), lambda n: n.room(releasing=releasing))
            for some in known.values():
                node = self._by_order[lowest(some)]
                if slots := node.slots(requirements, releasing=releasing):
                    sets[slots] = sets.get(slots, 0) | some
            return sets

        number = slots_of(requirements, releasing=releasing)
        at_first = None if requirements.part else by_state
        return indexes.sets((*asked(requirements), releasing), number, at_first)

    def holds(self, requirements: Requirements, *, releasing: bool = False) -> int:
        """Return how many workers of this request all nodes together can hold."""
        found = self.slots(requirements, self.allowed(requirements), releasing=releasing)
        return sum(slots * some.bit_count() for slots, some in found.items())

    def only_gpus_bind(self, requirements: Requirements) -> bool:
        """Return whether free whole GPUs alone decide how many workers a node can hold."""
        return not (
            requirements.part
            or (requirements.cpus and self._cpus_bound)
            or (requirements.memory and self._memory_bound)
            or self._bounded(requirements)
        )

    def _bounded(self, requirements: Requirements) -> bool:
        """Return whether GPUs lent by benches may be closed to these requirements (R3)."""
        return requirements.fixed and self._lends

    def hold_all(self, gpus: int, nodes: int, count: int, *, releasing: bool) -> bool:
        """Return whether ``count`` workers fit on these nodes, if whole GPUs alone decide."""
        if not gpus:
            return nodes != 0
        buckets = self.by_free[releasing]
        for free in range(len(buckets) - 1, gpus - 1, -1):
            if count <= 0:
                break
            if found := buckets[free] & nodes:
                count -= found.bit_count() * (free // gpus)
        return count <= 0

    def least_spoilt(self, requirements: Requirements, nodes: int) -> int:
        """Return the nodes that one more worker spoils least now (R12).

        Returns all of ``nodes`` if no node differs from the others, and 0 if the worker fits
        nowhere.
        """
        if not self._mixed:
            return nodes
        usual, indexes = self.usual, self._indexes

        def loss(node: NodeCapacity) -> int | None:
            return usual.loss(state_of(node), requirements)

        def by_state() -> dict[int, int]:
            sets: dict[int, int] = {}
            for state, some in indexes.sets("states", state_of).items():
                if (found := usual.loss(state, requirements)) is not None:
                    sets[found] = sets.get(found, 0) | some
            return sets

        sets = indexes.sets((*asked(requirements), "loss", usual.version()), loss, by_state)
        for spoilt in sorted(sets):
            if best := sets[spoilt] & nodes:
                return best
        return 0

    def _by_gpus(self, gpus: int, *, releasing: bool) -> dict[int, int]:
        if not gpus:
            return {PLENTY: self.every}
        sets: dict[int, int] = {}
        buckets = self.by_free[releasing]
        for free in sorted(buckets.filled):
            if free >= gpus:
                slots = free // gpus
                sets[slots] = sets.get(slots, 0) | buckets[free]
        return sets

    # ----------------------------------------------------------------- inside

    def _changed(self, node: NodeCapacity) -> None:
        free, free_releasing = node.free, node.free_releasing
        node.settle()
        bit = 1 << node.order
        if node.free != free:
            self.by_free[False].move(bit, free, node.free)
        if node.free_releasing != free_releasing:
            self.by_free[True].move(bit, free_releasing, node.free_releasing)
        if node.workers:
            self.used |= bit
        else:
            self.used &= ~bit
        self._indexes.changed(node)
