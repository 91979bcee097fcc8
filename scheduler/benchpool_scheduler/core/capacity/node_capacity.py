"""What is free on one node, and what is about to be free.

GPUs are sets of positions in ``Node.gpus``, as bits of a small number. A position may be
*occupied* (a job holds it), *going* too (its holder is leaving) and *taken* (this pass gave it
out). It is free when neither occupied nor taken; *soon* free also when it is going. A GPU in use
in parts is not free; what is left of it is for workers of the same project (R1).

Which GPUs a worker gets depends only on these sets, never on the order of earlier changes: a room
that was kept for weeks answers as one made afresh.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchpool_scheduler.core.capacity.bits import lowest, members
from benchpool_scheduler.core.capacity.links import choose
from benchpool_scheduler.core.capacity.shared_gpus import Part, SharedGpus
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU, exact
from benchpool_scheduler.core.jobs.job_info import Fit, Work
from benchpool_scheduler.core.model import GpuId, JobId, Node, Worker

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
        fixed: GPUs of workers that may not be paused, the leaving included.
        spare: CPUs and memory that are free now; negative when more is held than there is.
        parts: The GPUs in use in parts.
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
        "fixed",
        "loads",
        "memory_bound",
        "node",
        "now",
        "order",
        "parts",
        "soon",
        "spare",
        "spare_soon",
        "workers",
    )

    def __init__(self, node: Node, order: int) -> None:
        self.order = order
        self.renew(node)

    def renew(self, node: Node) -> None:
        """Begin again with nobody here, and with what the node has now."""
        self.node = node
        self.workers = self.fixed = 0
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
        self.parts = SharedGpus()
        self.now = self.soon = 0
        self.settle()

    # ----------------------------------------------------------------- what is free

    def free_gpus(self, *, soon: bool = False) -> int:
        """Return how many whole GPUs train may take here now, or once the leaving are gone."""
        return self.soon if soon else self.now

    def short_for_benches(self, *, called: bool = False) -> int:
        """Return how many GPUs benches lack here once the leaving are gone (R3).

        Args:
            called: Look only at those that their owners wait for.
        """
        wanted = self.node.called if called else self.node.kept
        return wanted - self._soon_free().bit_count()

    def open_gpus(self, fit: Fit, *, soon: bool = False) -> int:
        """Return how many whole GPUs a worker of this need may take: the lent ones or not (R3)."""
        free = self.soon if soon else self.now
        if not fit.fixed or not self.node.lent:
            return free
        return max(0, min(free, self.for_fixed))

    @property
    def for_fixed(self) -> int:
        """Return how many more GPUs may go to workers that may not be paused."""
        return len(self.node.gpus) - self.node.kept - self.node.lent - self.fixed

    def idle(self, gpus: Iterable[GpuId]) -> int:
        """Return how many of these GPUs nobody holds, given out or not."""
        return (self._positions(gpus) & ~self._occupied).bit_count()

    def settle(self) -> None:
        """Count again after a change."""
        kept = self.node.kept
        self.now = max(0, self._free().bit_count() - kept)
        self.soon = max(0, self._soon_free().bit_count() - kept)

    def blocked(self, *, soon: bool) -> int:
        """Return the GPUs of which nothing can be had, because they are in use as a whole."""
        if soon:
            return (self._occupied & ~self._going) | self._taken
        return self._occupied | self._taken

    def _free(self) -> int:
        return self._every & ~(self._occupied | self._taken | self.parts.now)

    def _soon_free(self) -> int:
        return self._every & ~(self.blocked(soon=True) | self.parts.soon)

    def state(self, *, soon: bool) -> tuple[int, int, int]:
        """Return what is free: GPUs, CPUs and memory; nodes of one state hold the same."""
        if soon:
            return self.soon, self.spare_soon[0], self.spare_soon[1]
        return self.now, self.spare[0], self.spare[1]

    def slots(self, fit: Fit, *, soon: bool) -> int:
        """Return how many workers of this need fit here; models and levels are not looked at."""
        found = PLENTY
        if fit.gpus:
            found = self.open_gpus(fit, soon=soon) // fit.gpus
        elif fit.part:
            found = self._part_slots(fit, soon=soon)
            if fit.fixed and self.node.lent:
                found = min(found, self.for_fixed)
        spare = self.spare_soon if soon else self.spare
        if fit.cpus and self.cpus_bound:
            found = min(found, spare[0] // fit.cpus)
        if fit.memory and self.memory_bound:
            found = min(found, spare[1] // fit.memory)
        return max(0, found)

    def _part_slots(self, fit: Fit, *, soon: bool) -> int:
        if not self.node.shared:
            return 0
        blocked = self.blocked(soon=soon)
        rests = self.parts.rests(fit.owner, blocked, soon=soon)
        opened = sum(rest // fit.part for _, rest in rests)
        return opened + self.free_gpus(soon=soon) * (WHOLE_GPU // fit.part)

    def _short_of(self, fit: Fit) -> bool:
        """Tell whether CPUs or memory are missing now for one worker."""
        return (self.cpus_bound and self.spare[0] < fit.cpus) or (
            self.memory_bound and self.spare[1] < fit.memory
        )

    # ----------------------------------------------------------------- who holds what

    def seat(self, work: Work, worker: Worker) -> None:
        """A job holds this worker; GPUs that the node no longer has are passed over."""
        self._load(work.fit)
        positions = self._positions(worker.gpus)
        if work.fit.fixed:
            self.fixed += positions.bit_count()
        if worker.part is not None:
            for at in members(positions):
                self.parts.seat(at, work.job.id, (work.fit.owner, worker.part))
            return
        if again := positions & self._occupied:
            for at in members(again):
                self._twice[at] = self._twice.get(at, 1) + 1
        self._occupied |= positions

    def unseat(self, work: Work, worker: Worker) -> None:
        """Take back ``seat``."""
        self._unload(work.fit)
        positions = self._positions(worker.gpus)
        if work.fit.fixed:
            self.fixed -= positions.bit_count()
        if worker.part is not None:
            for at in members(positions):
                self.parts.unseat(at, work.job.id)
            return
        if self._twice:
            positions = self._once_less(positions)
        self._occupied &= ~positions

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
            if worker.part is not None:
                self.parts.let_go(at, work.job.id)
            elif at not in self._twice:
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
            if worker.part is not None:
                self.parts.hold_again(at, work.job.id)
            elif self._leavers.pop(at, None) is not None:
                self._going &= ~(1 << at)
        fit = work.fit
        workers, cpus, memory = self.loads.pop(work.job.id, (1, fit.cpus, fit.memory))
        if workers > 1:
            self.loads[work.job.id] = workers - 1, cpus - fit.cpus, memory - fit.memory
        self.spare_soon[0] -= fit.cpus
        self.spare_soon[1] -= fit.memory

    # ----------------------------------------------------------------- what is given out

    def choose(self, fit: Fit, rest: int | None = None) -> Worker:
        """Return one more worker with its GPUs: free ones first, then those of the leaving.

        Among free ones links and sockets decide (R12).

        Args:
            rest: For a part: take a GPU of which so much is left; WHOLE_GPU for one not in use.
        """
        if fit.part:
            at = self._choose_shared(fit, rest)
            return Worker(self.node.name, (self.node.gpus[at],), fit.part)
        free, node = self._free(), self.node
        chosen = choose(node.links, node.sockets, 0, free, fit.gpus)
        if (missing := fit.gpus - chosen.bit_count()) > 0:
            later = self._soon_free() & ~free
            chosen = choose(node.links, node.sockets, chosen, later, missing)
        gpus = self.node.gpus
        return Worker(self.node.name, tuple(gpus[at] for at in members(chosen)))

    def _choose_shared(self, fit: Fit, wanted: int | None) -> int:
        """Return the GPU for a part: the one of which least is left, else one not in use."""
        for soon in (False, True):
            rests = self.parts.rests(fit.owner, self.blocked(soon=soon), soon=soon)
            enough = [(rest, at) for at, rest in rests if rest >= fit.part]
            exact_ones = [(rest, at) for rest, at in enough if rest == wanted]
            fresh = self.free_gpus(soon=soon) > 0
            if (enough and wanted != WHOLE_GPU) or (enough and not fresh):
                return min(exact_ones or enough)[1]
            if fresh:
                free = self._soon_free() if soon else self._free()
                return lowest(choose(self.node.links, self.node.sockets, 0, free, 1))
        raise AssertionError(f"a place on {self.node.name} holds a part of {fit.part}")

    def can_give(self, fit: Fit, workers: Iterable[Worker]) -> bool:
        """Tell whether all their GPUs are different, here, and free or soon free for them."""
        found, open_to_all = 0, self._free() | self._soon_free()
        for worker in workers:
            if len(worker.gpus) != (1 if fit.part else fit.gpus) or worker.part != (
                fit.part or None
            ):
                return False
            for gpu in worker.gpus:
                at = self._position.get(gpu, -1)
                if at < 0 or found & (1 << at):
                    return False
                if not open_to_all & (1 << at) and not self._has_rest(at, fit):
                    return False
                found |= 1 << at
        return True

    def _has_rest(self, at: int, fit: Fit, *, soon: bool = True) -> bool:
        """Tell whether a GPU in use in parts has enough left for a worker."""
        blocked = self.blocked(soon=soon) & (1 << at)
        return (
            fit.part > 0 and not blocked and self.parts.rest(at, fit.owner, soon=soon) >= fit.part
        )

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
        for at in members(positions & ~free):
            if not self._has_rest(at, fit, soon=False):
                after += [self._leavers[at]] if at in self._leavers else []
                after += self.parts.leaving(at)
        if fit.fixed:
            self.fixed += positions.bit_count()
        if worker.part is None:
            self._taken |= positions
        else:
            for at in members(positions):
                self.parts.give(at, self._part(fit))
        self._load(fit)
        return after

    def give_back(self, fit: Fit, worker: Worker) -> None:
        """Take back ``give``."""
        positions = self._positions(worker.gpus)
        if fit.fixed:
            self.fixed -= positions.bit_count()
        if worker.part is None:
            self._taken &= ~positions
        else:
            for at in members(positions):
                self.parts.give_back(at, self._part(fit))
        self._unload(fit)

    def _part(self, fit: Fit) -> Part:
        return fit.owner, fit.part

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
