"""The free GPUs of every node during a pass, and those that are about to be free.

A GPU of a leaving job is *soon* free: a claim may be promised it, a plain start may not use it.
What is kept for benches counts for nobody (R3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.amounts import NOTHING, Amounts, exact
from benchpool_scheduler.core.model import Activity, GpuId, JobId, Node, NodeName, Worker
from benchpool_scheduler.core.works import Work

PLENTY = 1 << 30
"""As many as anybody could ask for, where nothing bounds a resource."""


class NodeRoom:
    """One ready node: its free GPUs in order, and the GPUs of jobs that are leaving."""

    __slots__ = ("_known", "_spare", "free", "leaving", "loads", "node", "order", "workers")

    def __init__(self, node: Node, order: int) -> None:
        self.node = node
        self.order = order
        self.free: dict[GpuId, None] = dict.fromkeys(node.gpus)
        self.leaving: dict[GpuId, JobId] = {}
        self.loads: dict[JobId, Amounts] = {}
        self.workers = 0
        self._known: dict[tuple[Amounts, bool], int] = {}
        cpus, memory = exact(node.cpus or 0, node.memory_gib or 0)
        self._spare = [
            PLENTY if node.cpus is None else cpus,
            PLENTY if node.memory_gib is None else memory,
        ]

    def free_gpus(self, *, soon: bool = False) -> int:
        """Return how many GPUs train may take here now, or once the leaving are gone."""
        gpus = len(self.free) + (len(self.leaving) if soon else 0)
        return max(0, gpus - self.node.kept)

    def short_for_benches(self) -> int:
        """Return how many GPUs benches lack here once the leaving are gone (R3)."""
        return self.node.kept - len(self.free) - len(self.leaving)

    def changed(self) -> None:
        """Something here was taken or given back: forget what was worked out."""
        self._known.clear()

    def slots(self, need: Amounts, *, soon: bool) -> int:
        """Return how many workers of this need fit; remembered until the node changes."""
        fit = self._known.get((need, soon))
        if fit is None:
            fit = self._known[need, soon] = self._slots(need, soon=soon)
        return fit

    def _slots(self, need: Amounts, *, soon: bool) -> int:
        cpus, memory = self._spare
        if soon and self.loads:
            cpus += sum(load.cpus for load in self.loads.values())
            memory += sum(load.memory for load in self.loads.values())
        fit = PLENTY
        if need.gpus:
            fit = self.free_gpus(soon=soon) // need.gpus
        if need.cpus:
            fit = min(fit, cpus // need.cpus)
        if need.memory:
            fit = min(fit, memory // need.memory)
        return max(0, fit)

    def short_of(self, need: Amounts) -> bool:
        """Tell whether CPUs or memory, not GPUs, are missing now for one worker."""
        return self._spare[0] < need.cpus or self._spare[1] < need.memory

    def load(self, need: Amounts) -> None:
        """Book CPUs and memory of a worker."""
        self._spare[0] -= need.cpus
        self._spare[1] -= need.memory
        self.workers += 1

    def unload(self, need: Amounts) -> None:
        """Take back ``load``."""
        self._spare[0] += need.cpus
        self._spare[1] += need.memory
        self.workers -= 1


@dataclass(frozen=True, slots=True)
class Taken:
    """Workers given their GPUs, and the jobs that must be gone before they can start."""

    workers: tuple[Worker, ...]
    after: tuple[JobId, ...]


class Room:
    """All ready nodes, in the order of the snapshot."""

    def __init__(self, nodes: Sequence[Node], works: Iterable[Work]) -> None:
        self.nodes = [NodeRoom(node, order) for order, node in enumerate(nodes) if node.ready]
        self.by_name: Mapping[NodeName, NodeRoom] = {n.node.name: n for n in self.nodes}
        for work in works:
            if work.job.activity is Activity.QUEUED:
                continue
            for worker in work.job.held:
                self._occupy(work, worker)
                if work.job.activity is Activity.TERMINATING:
                    self.let_go(work, worker)

    def _occupy(self, work: Work, worker: Worker) -> None:
        if (room := self.by_name.get(worker.node)) is not None:
            room.changed()
            for gpu in worker.gpus:
                room.free.pop(gpu, None)
            room.load(work.need)

    def let_go(self, work: Work, worker: Worker) -> None:
        """The worker is leaving: its GPUs are soon free."""
        if (room := self.by_name.get(worker.node)) is None:
            return
        room.changed()
        for gpu in worker.gpus:
            if gpu in room.node.gpus:
                room.leaving[gpu] = work.job.id
        room.loads[work.job.id] = room.loads.get(work.job.id, NOTHING) + work.need

    def hold_again(self, work: Work, worker: Worker) -> None:
        """Take back ``let_go``."""
        if (room := self.by_name.get(worker.node)) is None:
            return
        room.changed()
        for gpu in worker.gpus:
            room.leaving.pop(gpu, None)
        left = room.loads.pop(work.job.id, NOTHING) - work.need
        if min(left) >= 0 and any(left):
            room.loads[work.job.id] = left

    def give_back(self, work: Work, worker: Worker) -> None:
        """Undo a start of this pass: its GPUs are free again, in the node's order."""
        room = self.by_name[worker.node]
        room.changed()
        back = {*room.free, *worker.gpus}
        room.free = {gpu: None for gpu in room.node.gpus if gpu in back}
        room.unload(work.need)

    def occupy(self, work: Work, worker: Worker) -> None:
        """Give free GPUs to a worker again, after ``give_back``."""
        self._occupy(work, worker)

    def take(self, work: Work, places: Iterable[NodeRoom]) -> Taken:
        """Give GPUs to one worker at each place: free ones first, then those of the leaving."""
        workers: list[Worker] = []
        after: dict[JobId, None] = {}
        for room in places:
            gpus = self._choose(room, work.need.gpus)
            workers.append(self._seat(work, room, gpus, after))
        return Taken(tuple(workers), tuple(after))

    def take_promised(self, work: Work, promised: Sequence[Worker]) -> Taken | None:
        """Give a job exactly the places it was promised, or nothing."""
        wanted: dict[NodeName, list[Worker]] = {}
        for worker in promised:
            wanted.setdefault(worker.node, []).append(worker)
        for name, workers in wanted.items():
            room = self.by_name.get(name)
            if room is None or room.slots(work.need, soon=True) < len(workers):
                return None
            gpus = [gpu for worker in workers for gpu in worker.gpus]
            if any(gpu not in room.free and gpu not in room.leaving for gpu in gpus):
                return None
        after: dict[JobId, None] = {}
        for worker in promised:
            self._seat(work, self.by_name[worker.node], worker.gpus, after)
        return Taken(tuple(promised), tuple(after))

    def _choose(self, room: NodeRoom, count: int) -> tuple[GpuId, ...]:
        return tuple([*room.free, *room.leaving][:count])

    def _seat(
        self, work: Work, room: NodeRoom, gpus: tuple[GpuId, ...], after: dict[JobId, None]
    ) -> Worker:
        room.changed()
        now = sum(gpu in room.free for gpu in gpus)
        if room.short_of(work.need) or (now and len(room.free) - now < room.node.kept):
            # GPUs for benches, CPUs and memory have no owner of their own: wait for all of them.
            after.update(dict.fromkeys(room.loads))
        for gpu in gpus:
            if gpu in room.free:
                del room.free[gpu]
            else:
                after[room.leaving.pop(gpu)] = None
        room.load(work.need)
        return Worker(room.node.name, gpus)
