"""What is free on one node, and what is about to be free.

GPUs are sets of positions in ``Node.gpus``, as bits of a small number. A position may be
*occupied* (a job holds it), *going* too (its holder is leaving) and *taken* (this pass gave it
out). It is free when neither occupied nor taken; *soon* free also when it is going.

Which GPUs a worker gets depends only on these sets, never on the order of earlier changes: a room
that was kept for weeks answers as one made afresh.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchpool_scheduler.core.amounts import exact
from benchpool_scheduler.core.bits import first, members
from benchpool_scheduler.core.model import GpuId, JobId, Node, Worker
from benchpool_scheduler.core.works import Fit, Work

PLENTY = 1 << 30
"""As many as anybody could ask for, where nothing bounds a resource."""


class NodeRoom:
    """One ready node.

    Attributes:
        order: Position in the snapshot; decides ties.
        now: Whole GPUs that train may use now, without those kept for benches (R3); ``soon``
            counts those of the leaving too.
        workers: How many are here, the leaving included.
        loads: By leaving job: how many workers, CPUs and memory it gives back.
        spare: CPUs and memory that are free now; negative when more is held than there is.
    """

    __slots__ = (
        "_every",
        "_going",
        "_leavers",
        "_occupied",
        "_position",
        "_taken",
        "_twice",
        "cpus_bound",
        "loads",
        "memory_bound",
        "node",
        "now",
        "order",
        "soon",
        "spare",
        "spare_soon",
        "workers",
    )

    def __init__(self, node: Node, order: int) -> None:
        self.node = node
        self.order = order
        self.workers = 0
        self.loads: dict[JobId, tuple[int, int, int]] = {}
        self.cpus_bound = node.cpus is not None
        self.memory_bound = node.memory_gib is not None
        cpus, memory = exact(node.cpus or 0, node.memory_gib or 0)
        self.spare = [cpus, memory]
        self.spare_soon = [cpus, memory]
        self._position = {gpu: at for at, gpu in enumerate(node.gpus)}
        self._every = (1 << len(node.gpus)) - 1
        self._occupied = self._going = self._taken = 0
        self._twice: dict[int, int] = {}  # positions that several jobs say they hold
        self._leavers: dict[int, JobId] = {}
        self.now = self.soon = 0
        self.settle()

    # ----------------------------------------------------------------- what is free

    def free_gpus(self, *, soon: bool = False) -> int:
        """Return how many whole GPUs train may take here now, or once the leaving are gone."""
        return self.soon if soon else self.now

    def short_for_benches(self) -> int:
        """Return how many GPUs benches lack here once the leaving are gone (R3)."""
        return self.node.kept - self._soon_free().bit_count()

    def idle(self, gpus: Iterable[GpuId]) -> int:
        """Return how many of these GPUs nobody holds, given out or not."""
        return (self._positions(gpus) & ~self._occupied).bit_count()

    def settle(self) -> None:
        """Count again after a change."""
        kept = self.node.kept
        self.now = max(0, self._free().bit_count() - kept)
        self.soon = max(0, self._soon_free().bit_count() - kept)

    def _free(self) -> int:
        return self._every & ~(self._occupied | self._taken)

    def _soon_free(self) -> int:
        return self._every & ~((self._occupied & ~self._going) | self._taken)

    def state(self, *, soon: bool) -> tuple[int, int, int]:
        """Return what is free: GPUs, CPUs and memory; nodes of one state hold the same."""
        if soon:
            return self.soon, self.spare_soon[0], self.spare_soon[1]
        return self.now, self.spare[0], self.spare[1]

    def slots(self, fit: Fit, *, soon: bool) -> int:
        """Return how many workers of this need fit here; models and levels are not looked at."""
        found = PLENTY
        if fit.gpus:
            found = (self.soon if soon else self.now) // fit.gpus
        spare = self.spare_soon if soon else self.spare
        if fit.cpus and self.cpus_bound:
            found = min(found, spare[0] // fit.cpus)
        if fit.memory and self.memory_bound:
            found = min(found, spare[1] // fit.memory)
        return max(0, found)

    def _short_of(self, fit: Fit) -> bool:
        """Tell whether CPUs or memory are missing now for one worker."""
        return (self.cpus_bound and self.spare[0] < fit.cpus) or (
            self.memory_bound and self.spare[1] < fit.memory
        )

    # ----------------------------------------------------------------- who holds what

    def seat(self, work: Work, worker: Worker) -> None:
        """A job holds this worker; GPUs that the node no longer has are passed over."""
        positions = self._positions(worker.gpus)
        if again := positions & self._occupied:
            for at in members(again):
                self._twice[at] = self._twice.get(at, 1) + 1
        self._occupied |= positions
        self._load(work.fit)

    def unseat(self, work: Work, worker: Worker) -> None:
        """Take back ``seat``."""
        positions = self._positions(worker.gpus)
        if self._twice:
            positions = self._once_less(positions)
        self._occupied &= ~positions
        self._unload(work.fit)

    def _once_less(self, positions: int) -> int:
        """Return those of the positions that nobody else holds as well."""
        for at in members(positions):
            if (holders := self._twice.pop(at, 1)) > 1:
                positions &= ~(1 << at)
                if holders > 2:
                    self._twice[at] = holders - 1
        return positions

    def let_go(self, work: Work, worker: Worker) -> None:
        """A seated worker is leaving: its GPUs are soon free."""
        for at in members(self._positions(worker.gpus)):
            if at not in self._twice:
                self._leavers[at] = work.job.id
                self._going |= 1 << at
        fit = work.fit
        workers, cpus, memory = self.loads.get(work.job.id, (0, 0, 0))
        self.loads[work.job.id] = workers + 1, cpus + fit.cpus, memory + fit.memory
        self.spare_soon[0] += fit.cpus
        self.spare_soon[1] += fit.memory

    def hold_again(self, work: Work, worker: Worker) -> None:
        """Take back ``let_go``."""
        for at in members(self._positions(worker.gpus)):
            if self._leavers.pop(at, None) is not None:
                self._going &= ~(1 << at)
        fit = work.fit
        workers, cpus, memory = self.loads.pop(work.job.id, (1, fit.cpus, fit.memory))
        if workers > 1:
            self.loads[work.job.id] = workers - 1, cpus - fit.cpus, memory - fit.memory
        self.spare_soon[0] -= fit.cpus
        self.spare_soon[1] -= fit.memory

    # ----------------------------------------------------------------- what is given out

    def choose(self, fit: Fit) -> tuple[GpuId, ...]:
        """Return the GPUs that one more worker gets: free ones first, then those of the leaving."""
        free = self._free()
        chosen = first(free, fit.gpus)
        if (missing := fit.gpus - chosen.bit_count()) > 0:
            chosen |= first(self._soon_free() & ~free, missing)
        gpus = self.node.gpus
        return tuple(gpus[at] for at in members(chosen))

    def can_give(self, gpus: Iterable[GpuId]) -> bool:
        """Tell whether all these GPUs are different, here, and free or soon free."""
        found, open_to_all = 0, self._free() | self._soon_free()
        for gpu in gpus:
            bit = 1 << self._position[gpu] if gpu in self._position else 0
            if not bit & open_to_all & ~found:
                return False
            found |= bit
        return True

    def give(self, fit: Fit, worker: Worker) -> list[JobId]:
        """Give a worker its GPUs; return the jobs that must be gone before it can start.

        GPUs kept for benches, CPUs and memory have no owner of their own: who is short of those
        waits for all that leave.
        """
        positions, free = self._positions(worker.gpus), self._free()
        now = (positions & free).bit_count()
        after: list[JobId] = []
        if self._short_of(fit) or (now and free.bit_count() - now < self.node.kept):
            after = sorted(self.loads)
        if later := positions & ~free:
            after += [self._leavers[at] for at in members(later) if at in self._leavers]
        self._taken |= positions
        self._load(fit)
        return after

    def give_back(self, fit: Fit, worker: Worker) -> None:
        """Take back ``give``."""
        self._taken &= ~self._positions(worker.gpus)
        self._unload(fit)

    # ----------------------------------------------------------------- inside

    def _positions(self, gpus: Iterable[GpuId]) -> int:
        known, found = self._position, 0
        for gpu in gpus:
            if gpu in known:
                found |= 1 << known[gpu]
        return found

    def _load(self, fit: Fit) -> None:
        self._book(fit, 1)

    def _unload(self, fit: Fit) -> None:
        self._book(fit, -1)

    def _book(self, fit: Fit, workers: int) -> None:
        self.workers += workers
        for spare in (self.spare, self.spare_soon):
            spare[0] -= workers * fit.cpus
            spare[1] -= workers * fit.memory
