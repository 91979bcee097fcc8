"""The free GPUs of every node, kept from pass to pass: those free now, and those soon free.

A GPU of a leaving job is *soon* free: a claim may be promised it, a plain start may not use it.
What is kept for benches counts for nobody (R3).

Facts (`seat`, `let_go`) and decisions of a pass (`take`) each have an exact inverse, and each
costs the same whatever the size of the pool. Over all nodes, sets of nodes are kept as bits: by
how many GPUs are free, by model, in use or not. A place is then found by joining such sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.capacity.bits import members, set_of
from benchpool_scheduler.core.capacity.buckets import Buckets
from benchpool_scheduler.core.capacity.domains import Levels
from benchpool_scheduler.core.capacity.fragmentation import Usual, state_of
from benchpool_scheduler.core.capacity.indexes import Indexes, Mark
from benchpool_scheduler.core.capacity.node_capacity import PLENTY, NodeRoom
from benchpool_scheduler.core.jobs.job_info import Fit, Work
from benchpool_scheduler.core.model import JobId, Node, NodeName, Worker

__all__ = ["PLENTY", "NodeRoom", "Room", "Taken"]


MOST_ALLOWED = 4096
"""So many answers to the question where a job may go at all are remembered."""

Where = tuple[tuple[str, ...], bool, frozenset[NodeName] | None, frozenset[NodeName]]
"""What decides that: models, whether a part of a GPU will do, nodes by name."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Workers given their GPUs, and the jobs that must be gone before they can start."""

    workers: tuple[Worker, ...]
    after: tuple[JobId, ...]


class Room:
    """All ready nodes, in the order of the snapshot.

    Attributes:
        every: All ready nodes as a set of their orders. ``used``: those with any worker.
        by_free: For now and for soon: the nodes by how many whole GPUs are free.
        levels: The domains of the machine room.
        largest: GPUs of the largest node.
        homes: Where this pass has put the first worker of a job.
    """

    def __init__(self, nodes: Sequence[Node], topology: Sequence[str] = ()) -> None:
        self.topology = topology
        self.nodes = [NodeRoom(node, order) for order, node in enumerate(nodes) if node.ready]
        self.by_name: Mapping[NodeName, NodeRoom] = {n.node.name: n for n in self.nodes}
        self.every = set_of(n.order for n in self.nodes)
        self.used = 0
        self.levels = Levels([(n.order, n.node) for n in self.nodes], topology)
        most = max((len(n.node.gpus) for n in self.nodes), default=0)
        self.by_free = (self._buckets(most), self._buckets(most))
        self._by_order = {n.order: n for n in self.nodes}
        self._allowed: dict[Where, int] = {}
        self._indexes = Indexes(self.nodes)
        self.homes: dict[JobId, NodeName] = {}
        self.largest = max((len(node.node.gpus) for node in self.nodes), default=0)
        self._cpus_bound = any(n.cpus_bound for n in self.nodes)
        self._memory_bound = any(n.memory_bound for n in self.nodes)
        self._shared = any(n.node.shared for n in self.nodes)
        self._lends = any(n.node.lent for n in self.nodes)
        self._mixed = self._shared or self._cpus_bound or self._memory_bound
        self._usual = Usual()

    def _buckets(self, most: int) -> Buckets:
        orders: list[list[int]] = [[] for _ in range(most + 1)]
        for node in self.nodes:
            orders[node.now].append(node.order)
        return Buckets(set_of(found) for found in orders)

    # ----------------------------------------------------------------- facts

    def renew(self, node: Node) -> None:
        """Let a node have other GPUs, or keep others for benches; nobody is seated on it now."""
        if (known := self.by_name.get(node.name)) is None:
            return
        now, soon = known.now, known.soon
        known.renew(node)
        self._lends = self._lends or node.lent > 0
        self.largest = max(self.largest, len(node.gpus))
        for buckets, before, after in zip(
            self.by_free, (now, soon), (known.now, known.soon), strict=True
        ):
            buckets.extend([0] * (after + 1 - len(buckets)))
            buckets.move(1 << known.order, before, after)
        self._indexes.changed(known)

    def seat(self, work: Work, worker: Worker) -> None:
        """A job holds this worker; on a node that is not here this changes nothing."""
        self._tell(NodeRoom.seat, work, worker)
        self._note(work.fit, 1)

    def unseat(self, work: Work, worker: Worker) -> None:
        """Take back ``seat``."""
        self._tell(NodeRoom.unseat, work, worker)
        self._note(work.fit, -1)

    def _note(self, fit: Fit, workers: int) -> None:
        if self._mixed:
            self._usual.note(fit, workers)

    def let_go(self, work: Work, worker: Worker) -> None:
        """A seated worker is leaving: its GPUs are soon free."""
        self._tell(NodeRoom.let_go, work, worker)

    def hold_again(self, work: Work, worker: Worker) -> None:
        """Take back ``let_go``."""
        self._tell(NodeRoom.hold_again, work, worker)

    def _tell(
        self, what: Callable[[NodeRoom, Work, Worker], None], work: Work, worker: Worker
    ) -> None:
        if (node := self.by_name.get(worker.node)) is not None:
            what(node, work, worker)
            self._changed(node)

    # ----------------------------------------------------------------- decisions

    def take(self, work: Work, places: Iterable[NodeRoom]) -> Taken:
        """Give GPUs to one worker at each place: free ones first, then those of the leaving."""
        workers: list[Worker] = []
        after: dict[JobId, None] = {}
        fit = work.fit
        for node in places:
            rest = None
            if fit.part:
                self._usual.version()
                rest = self._usual.rest(state_of(node), fit)
            worker = node.choose(fit, rest)
            after.update(dict.fromkeys(node.give(work.fit, worker)))
            self._changed(node)
            workers.append(worker)
        return Taken(tuple(workers), tuple(after))

    def take_promised(self, work: Work, promised: Sequence[Worker]) -> Taken | None:
        """Give a job exactly the places it was promised, or nothing."""
        wanted: dict[NodeName, list[Worker]] = {}
        for worker in promised:
            wanted.setdefault(worker.node, []).append(worker)
        for name, workers in wanted.items():
            node = self.by_name.get(name)
            if node is None or node.slots(work.fit, soon=True) < len(workers):
                return None
            if not node.can_give(work.fit, workers):
                return None
        after: dict[JobId, None] = {}
        for worker in promised:
            node = self.by_name[worker.node]
            after.update(dict.fromkeys(node.give(work.fit, worker)))
            self._changed(node)
        return Taken(tuple(promised), tuple(after))

    def give_back(self, work: Work, worker: Worker) -> None:
        """Take back one worker of ``take`` or ``take_promised``."""
        node = self.by_name[worker.node]
        node.give_back(work.fit, worker)
        self._changed(node)

    def retake(self, work: Work, worker: Worker) -> None:
        """Take again exactly what was given back."""
        node = self.by_name[worker.node]
        node.give(work.fit, worker)
        self._changed(node)

    # ----------------------------------------------------------------- questions

    def allowed(self, fit: Fit, models: tuple[str, ...] | None = None) -> int:
        """Return the nodes that a worker may use at all (R1, R13).

        Args:
            models: GPU models to look at instead of all that it accepts.
        """
        models = fit.models if models is None else models
        if not models and not fit.part and fit.anywhere:
            return self.every
        key = (models, fit.part > 0, fit.only, fit.barred)
        if key not in self._allowed:
            if len(self._allowed) >= MOST_ALLOWED:
                self._allowed.clear()
            nodes = (n for n in self._named(fit) if _may_use(n, models, fit))
            self._allowed[key] = set_of(n.order for n in nodes)
        return self._allowed[key]

    def _named(self, fit: Fit) -> Iterable[NodeRoom]:
        """Return the nodes to look at: few where only few may be used."""
        if fit.only is None:
            return self.nodes
        return [self.by_name[name] for name in fit.only if name in self.by_name]

    def home(self, work: Work) -> NodeName | None:
        """Return where the first worker of a job is, or will be by this pass; None for nowhere."""
        held = work.job.held
        return self.homes.get(work.job.id) or (held[0].node if held else None)

    def may_use(self, fit: Fit, node: NodeName) -> bool:
        """Tell whether a job of this fit may use the node at all, whatever is free."""
        room = self.by_name.get(node)
        return room is not None and _may_use(room, fit.models, fit)

    def acceptable(self, fit: Fit) -> list[NodeRoom]:
        """Return the nodes that a job of this fit may use at all, whatever is free."""
        return [n for n in self.nodes if _may_use(n, fit.models, fit)]

    def free(self, fit: Fit, *, soon: bool = False) -> int:
        """Return how many whole GPUs are free, now or soon, for this fit."""
        if self._bounded(fit):
            return sum(n.open_gpus(fit, soon=soon) for n in self.acceptable(fit))
        return self.by_free[soon].gpus(self.allowed(fit))

    def unclaimed(self) -> int:
        """Return how many whole GPUs are being left that nobody was promised yet."""
        return self.by_free[True].gpus(self.every) - self.by_free[False].gpus(self.every)

    def most_free(self, fit: Fit) -> int:
        """Return how many GPUs are free now on the node of this fit where most are."""
        if self._bounded(fit):
            return max((n.open_gpus(fit) for n in self.acceptable(fit)), default=0)
        nodes, buckets = self.allowed(fit), self.by_free[False]
        return next((k for k in range(len(buckets) - 1, 0, -1) if buckets[k] & nodes), 0)

    def freest(self, fit: Fit, *, soon: bool) -> Iterator[NodeRoom]:
        """Yield the nodes that this fit may use, those with most free GPUs first, then by order."""
        nodes = self.allowed(fit)
        for found in self.by_free[soon][::-1]:
            for order in members(found & nodes):
                yield self._by_order[order]

    def at(self, order: int) -> NodeRoom:
        """Return the node with this order."""
        return self._by_order[order]

    def slots(self, fit: Fit, nodes: int, *, soon: bool) -> dict[int, int]:
        """Return which of the nodes hold how many workers of this need, the number first."""
        if self.only_gpus_bind(fit):
            sets = self._by_gpus(fit.gpus, soon=soon)
        else:
            slots_of = _slots_of(fit, soon=soon)
            sets = self._indexes.sets(
                (*_need(fit), soon),
                slots_of,
                lambda: self._indexes.among(self._with(fit.gpus, soon=soon), slots_of),
            )
        return {slots: some for slots, found in sets.items() if (some := found & nodes)}

    def holds(self, fit: Fit, *, soon: bool = False) -> int:
        """Return how many workers of this need all nodes together hold."""
        found = self.slots(fit, self.allowed(fit), soon=soon)
        return sum(slots * some.bit_count() for slots, some in found.items())

    def only_gpus_bind(self, fit: Fit) -> bool:
        """Tell whether whole free GPUs alone decide how many workers a node holds."""
        return not (
            fit.part
            or (fit.cpus and self._cpus_bound)
            or (fit.memory and self._memory_bound)
            or self._bounded(fit)
        )

    def _bounded(self, fit: Fit) -> bool:
        """Tell whether it may be kept from what benches have lent (R3)."""
        return fit.fixed and self._lends

    def hold_all(self, gpus: int, nodes: int, count: int, *, soon: bool) -> bool:
        """Tell whether so many workers fit on these nodes, where whole GPUs alone decide."""
        if not gpus:
            return nodes != 0
        buckets = self.by_free[soon]
        for free in range(len(buckets) - 1, gpus - 1, -1):
            if count <= 0:
                break
            if found := buckets[free] & nodes:
                count -= found.bit_count() * (free // gpus)
        return count <= 0

    def least_spoilt(self, fit: Fit, nodes: int) -> int:
        """Return those of the nodes that one more worker spoils least now (R12).

        All of the nodes where every node is alike; none where it fits nowhere.
        """
        if not self._mixed:
            return nodes
        usual, indexes = self._usual, self._indexes

        def loss(node: NodeRoom) -> int | None:
            return usual.loss(state_of(node), fit)

        def by_state() -> dict[int, int]:
            sets: dict[int, int] = {}
            for state, some in indexes.sets("states", state_of).items():
                if (found := usual.loss(state, fit)) is not None:
                    sets[found] = sets.get(found, 0) | some
            return sets

        sets = indexes.sets((*_need(fit), "loss", usual.version()), loss, by_state)
        for spoilt in sorted(sets):
            if best := sets[spoilt] & nodes:
                return best
        return 0

    def _by_gpus(self, gpus: int, *, soon: bool) -> dict[int, int]:
        if not gpus:
            return {PLENTY: self.every}
        sets: dict[int, int] = {}
        buckets = self.by_free[soon]
        for free in sorted(buckets.filled):
            if free >= gpus:
                slots = free // gpus
                sets[slots] = sets.get(slots, 0) | buckets[free]
        return sets

    # ----------------------------------------------------------------- inside

    def _with(self, gpus: int, *, soon: bool) -> int:
        """Return the nodes on which at least so many GPUs are free."""
        found = 0 if gpus else self.every
        for some in self.by_free[soon][gpus:]:
            found |= some
        return found

    def mark(self) -> Mark:
        """Return the present as something to come back to, see ``back_to``."""
        return self._indexes.mark()

    def back_to(self, mark: Mark) -> None:
        """Forget what changed since a mark: all of it was undone."""
        self._indexes.back_to(mark)

    def _changed(self, node: NodeRoom) -> None:
        now, soon = node.now, node.soon
        node.settle()
        bit = 1 << node.order
        if node.now != now:
            self.by_free[False].move(bit, now, node.now)
        if node.soon != soon:
            self.by_free[True].move(bit, soon, node.soon)
        if node.workers:
            self.used |= bit
        else:
            self.used &= ~bit
        self._indexes.changed(node)


def _slots_of(fit: Fit, *, soon: bool) -> Callable[[NodeRoom], int | None]:
    """Return what tells how many workers a node holds; nodes with the same free hold the same."""
    alike: dict[tuple[int, int, int, int], int] = {}

    def slots(node: NodeRoom) -> int | None:
        if fit.part:
            return node.slots(fit, soon=soon) or None
        state = (*node.state(soon=soon), node.open_gpus(fit, soon=soon))
        found = alike.get(state)
        if found is None:
            found = alike[state] = node.slots(fit, soon=soon)
        return found or None

    return slots


def _may_use(room: NodeRoom, models: tuple[str, ...], fit: Fit) -> bool:
    node = room.node
    return (
        (not models or node.gpu_model in models)
        and (not fit.part or node.shared)
        and (fit.anywhere or _named(fit, node.name))
    )


def _named(fit: Fit, name: NodeName) -> bool:
    return name not in fit.barred and (fit.only is None or name in fit.only)


def _need(fit: Fit) -> tuple[int, int, int, int, int, bool]:
    return fit.gpus, fit.part, fit.owner, fit.cpus, fit.memory, fit.fixed
