"""Free capacity of one node, now and once leaving jobs are gone.

GPUs are sets of positions in ``Node.gpus``, as bits of a small number. A position may be
*occupied* (a job holds it), also *releasing* (its holder is leaving), and *assigned* (by this
pass). It is free if it is neither occupied nor assigned. With ``releasing`` it is also free if its
holder is leaving. A GPU in use in parts is not free. Its rest is for workers of the same project
(R1).

The GPUs of a worker depend only on these sets and never on the order of earlier changes. An
instance kept for weeks therefore gives the same results as a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchpool_scheduler.core.capacity.assignment import Departure
from benchpool_scheduler.core.capacity.bits import members
from benchpool_scheduler.core.capacity.shared_gpus import Part, SharedGpus
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU, exact
from benchpool_scheduler.core.jobs.job_info import JobInfo, Requirements
from benchpool_scheduler.core.model import GpuId, JobId, Node, Worker

PLENTY = 1 << 30
"""Number that exceeds every request, for resources without a bound."""


class NodeCapacity:
    """One ready node.

    Attributes:
        order: Position in the snapshot. It decides ties.
        free: Whole GPUs that train may use now, without those kept for benches (R3).
        free_releasing: The same, with GPUs of leaving workers.
        workers: Number of workers here, with leaving ones.
        leaving: Leaving workers, by job.
        fixed: GPUs of workers that may not be paused, with leaving ones.
        unused: CPUs and memory that are free now. Negative if more is held than the node has.
        unused_releasing: The same, with those of leaving workers.
        parts: GPUs in use in parts.
    """

    __slots__ = (
        "_assigned",
        "_departures",
        "_every",
        "_occupied",
        "_position",
        "_releasing",
        "_twice",
        "cpus_bound",
        "fixed",
        "free",
        "free_releasing",
        "leaving",
        "memory_bound",
        "node",
        "order",
        "parts",
        "unused",
        "unused_releasing",
        "workers",
    )

    def __init__(self, node: Node, order: int) -> None:
        self.order = order
        self.renew(node)

    def renew(self, node: Node) -> None:
        """Reset the node to no workers and to its present hardware."""
        self.node = node
        self.workers = self.fixed = 0
        self.leaving: dict[JobId, list[Worker]] = {}
        self.cpus_bound = node.cpus is not None
        self.memory_bound = node.memory_gib is not None
        cpus, memory = exact(node.cpus or 0, node.memory_gib or 0)
        self.unused = self.unused_releasing = (cpus, memory)
        self._position = {gpu: at for at, gpu in enumerate(node.gpus)}
        self._every = (1 << len(node.gpus)) - 1
        self._occupied = self._releasing = self._assigned = 0
        self._twice: dict[int, int] = {}  # positions held by several jobs, with the count
        self._departures: dict[int, Departure] = {}
        self.parts = SharedGpus()
        self.free = self.free_releasing = 0
        self.settle()

    # ----------------------------------------------------------------- free capacity

    def free_gpus(self, *, releasing: bool = False) -> int:
        """Return how many whole GPUs train may take here, now or once leaving workers are gone."""
        return self.free_releasing if releasing else self.free

    def short_for_benches(self, *, called: bool = False) -> int:
        """Return how many GPUs benches lack here once leaving workers are gone (R3).

        Args:
            called: Count only the GPUs that bench owners wait for.
        """
        wanted = self.node.called if called else self.node.kept
        return wanted - self.free_set_releasing().bit_count()

    def open_gpus(self, requirements: Requirements, *, releasing: bool = False) -> int:
        """Return how many whole GPUs a worker may take here. Only pausable ones take lent GPUs
        (R3).
        """
        free = self.free_releasing if releasing else self.free
        if not requirements.fixed or not self.node.lent:
            return free
        return max(0, min(free, self.for_fixed))

    @property
    def for_fixed(self) -> int:
        """Return how many more GPUs workers that may not be paused can take."""
        return len(self.node.gpus) - self.node.kept - self.node.lent - self.fixed

    def idle(self, gpus: Iterable[GpuId]) -> int:
        """Return how many of these GPUs no job holds, even if this pass has assigned them."""
        return (self._positions(gpus) & ~self._occupied).bit_count()

    def settle(self) -> None:
        """Recompute the free GPUs after a change."""
        kept = self.node.kept
        self.free = max(0, self.free_set().bit_count() - kept)
        self.free_releasing = max(0, self.free_set_releasing().bit_count() - kept)

    def blocked(self, *, releasing: bool) -> int:
        """Return the GPUs that are in use as a whole, as a set of positions."""
        if releasing:
            return (self._occupied & ~self._releasing) | self._assigned
        return self._occupied | self._assigned

    def free_set(self) -> int:
        """Return the unused GPUs, with those kept for benches, as a set of positions."""
        return self._every & ~(self._occupied | self._assigned | self.parts.in_use)

    def free_set_releasing(self) -> int:
        """Return the same, with GPUs of leaving workers."""
        return self._every & ~(self.blocked(releasing=True) | self.parts.in_use_after)

    def room(self, *, releasing: bool) -> tuple[int, int, int, int]:
        """Return the free amounts that decide how many workers without a part of a GPU fit here.

        The amounts are free GPUs, GPUs for workers that may not be paused, CPUs and memory.
        ``PLENTY`` means no bound.
        """
        free = self.free_releasing if releasing else self.free
        unused = self.unused_releasing if releasing else self.unused
        return (
            free,
            self.for_fixed if self.node.lent else PLENTY,
            unused[0] if self.cpus_bound else PLENTY,
            unused[1] if self.memory_bound else PLENTY,
        )

    def slots(self, requirements: Requirements, *, releasing: bool) -> int:
        """Return how many workers of this request fit here, regardless of models and levels."""
        found = PLENTY
        if requirements.gpus:
            found = self.open_gpus(requirements, releasing=releasing) // requirements.gpus
        elif requirements.part:
            found = self._part_slots(requirements, releasing=releasing)
            if requirements.fixed and self.node.lent:
                found = min(found, self.for_fixed)
        unused = self.unused_releasing if releasing else self.unused
        if requirements.cpus and self.cpus_bound:
            found = min(found, unused[0] // requirements.cpus)
        if requirements.memory and self.memory_bound:
            found = min(found, unused[1] // requirements.memory)
        return max(0, found)

    def _part_slots(self, requirements: Requirements, *, releasing: bool) -> int:
        if not self.node.shared:
            return 0
        blocked = self.blocked(releasing=releasing)
        rests = self.parts.rests(requirements.owner, blocked, releasing=releasing)
        opened = sum(rest // requirements.part for _, rest in rests)
        return opened + self.free_gpus(releasing=releasing) * (WHOLE_GPU // requirements.part)

    def _short_of(self, requirements: Requirements) -> bool:
        """Return whether one worker lacks CPUs or memory now."""
        return (self.cpus_bound and self.unused[0] < requirements.cpus) or (
            self.memory_bound and self.unused[1] < requirements.memory
        )

    # ----------------------------------------------------------------- holders

    def seat(self, info: JobInfo, worker: Worker) -> None:
        """Record that a job holds this worker. GPUs that the node no longer has are skipped."""
        self._book(info.requirements, 1)
        positions = self._positions(worker.gpus)
        if info.requirements.fixed:
            self.fixed += positions.bit_count()
        if worker.part is not None:
            for at in members(positions):
                self.parts.seat(at, info.job.id, (info.requirements.owner, worker.part))
            return
        if again := positions & self._occupied:
            for at in members(again):
                self._twice[at] = self._twice.get(at, 1) + 1
        self._occupied |= positions

    def unseat(self, info: JobInfo, worker: Worker) -> None:
        """Record that a job no longer holds this worker."""
        self._book(info.requirements, -1)
        positions = self._positions(worker.gpus)
        if info.requirements.fixed:
            self.fixed -= positions.bit_count()
        if worker.part is not None:
            for at in members(positions):
                self.parts.unseat(at, info.job.id)
            return
        if self._twice:
            positions = self._once_less(positions)
        self._occupied &= ~positions

    def _once_less(self, positions: int) -> int:
        """Return the positions that no other job holds as well."""
        for at in members(positions):
            if (holders := self._twice.pop(at, 1)) > 1:
                positions &= ~(1 << at)
                if holders > 2:
                    self._twice[at] = holders - 1
        return positions

    def release(self, info: JobInfo, worker: Worker) -> None:
        """Mark the GPUs of a seated worker as releasing."""
        departure = Departure(info.job.id, worker)
        for at in members(self._positions(worker.gpus)):
            if worker.part is not None:
                self.parts.release(at, info.job.id)
            elif at not in self._twice:
                self._departures[at] = departure
                self._releasing |= 1 << at
        self.leaving.setdefault(info.job.id, []).append(worker)
        _, cpus, memory = info.request
        if cpus or memory:
            free = self.unused_releasing
            self.unused_releasing = free[0] + cpus, free[1] + memory

    def hold(self, info: JobInfo, worker: Worker) -> None:
        """Undo ``release``: the worker stays."""
        for at in members(self._positions(worker.gpus)):
            if worker.part is not None:
                self.parts.hold(at, info.job.id)
            elif self._departures.pop(at, None) is not None:
                self._releasing &= ~(1 << at)
        self.leaving[info.job.id].remove(worker)
        if not self.leaving[info.job.id]:
            del self.leaving[info.job.id]
        _, cpus, memory = info.request
        if cpus or memory:
            free = self.unused_releasing
            self.unused_releasing = free[0] - cpus, free[1] - memory

    # ----------------------------------------------------------------- assignments of this pass

    def can_give(self, requirements: Requirements, workers: Iterable[Worker]) -> bool:
        """Return whether all GPUs of the workers differ, exist here, and are free or releasing."""
        found, open_to_all = 0, self.free_set() | self.free_set_releasing()
        for worker in workers:
            if len(worker.gpus) != (
                1 if requirements.part else requirements.gpus
            ) or worker.part != (requirements.part or None):
                return False
            for gpu in worker.gpus:
                at = self._position.get(gpu, -1)
                if at < 0 or found & (1 << at):
                    return False
                if not open_to_all & (1 << at) and not self._has_rest(at, requirements):
                    return False
                found |= 1 << at
        return True

    def _has_rest(self, at: int, requirements: Requirements, *, releasing: bool = True) -> bool:
        """Return whether a GPU in use in parts has enough left for a worker."""
        blocked = self.blocked(releasing=releasing) & (1 << at)
        return (
            requirements.part > 0
            and not blocked
            and self.parts.rest(at, requirements.owner, releasing=releasing) >= requirements.part
        )

    def assign(self, info: JobInfo, worker: Worker) -> list[Departure]:
        """Assign a worker its GPUs. Return the departures that it must wait for.

        GPUs kept for benches, CPUs and memory are not tracked by owner. A worker that lacks one of
        them waits for all leaving workers.
        """
        requirements = info.requirements
        positions, free = self._positions(worker.gpus), self.free_set()
        now = (positions & free).bit_count()
        after: list[Departure] = []
        if self._short_of(requirements) or (now and free.bit_count() - now < self.node.kept):
            after = [
                Departure(job, one) for job in sorted(self.leaving) for one in self.leaving[job]
            ]
        for at in members(positions & ~free):
            if at in self._departures:
                after.append(self._departures[at])
            elif not self._has_rest(at, requirements, releasing=False):
                after += self._departures_of_parts(at)
        if requirements.fixed:
            self.fixed += positions.bit_count()
        if worker.part is None:
            self._assigned |= positions
        else:
            for at in members(positions):
                self.parts.assign(at, self._part(requirements))
        self._book(requirements, 1)
        return after

    def _departures_of_parts(self, at: int) -> Iterator[Departure]:
        for job, part in self.parts.releasing(at):
            yield Departure(job, Worker(self.node.name, (self.node.gpus[at],), part))

    def unassign(self, info: JobInfo, worker: Worker) -> None:
        """Undo ``assign``."""
        requirements = info.requirements
        positions = self._positions(worker.gpus)
        if requirements.fixed:
            self.fixed -= positions.bit_count()
        if worker.part is None:
            self._assigned &= ~positions
        else:
            for at in members(positions):
                self.parts.unassign(at, self._part(requirements))
        self._book(requirements, -1)

    def _part(self, requirements: Requirements) -> Part:
        return requirements.owner, requirements.part

    # ----------------------------------------------------------------- inside

    def _positions(self, gpus: Iterable[GpuId]) -> int:
        known, found = self._position, 0
        for gpu in gpus:
            if gpu in known:
                found |= 1 << known[gpu]
        return found

    def _book(self, requirements: Requirements, workers: int) -> None:
        self.workers += workers
        cpus, memory = workers * requirements.cpus, workers * requirements.memory
        if cpus or memory:
            now, later = self.unused, self.unused_releasing
            self.unused = now[0] - cpus, now[1] - memory
            self.unused_releasing = later[0] - cpus, later[1] - memory
