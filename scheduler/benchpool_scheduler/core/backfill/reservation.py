"""Reservation that keeps large jobs from starving (R14).

Capacity is kept for the first blocked job at the time when enough GPUs will be free. Other jobs
start before it only if they do not delay it.

The rule is that of EASY backfilling: D. Lifka, "The ANL/IBM SP scheduling system", 1995. One job
has a reservation: the first one in scheduling order (R11) that lacks free GPUs. Its *shadow time*
is the instant at which it fits when running jobs end as known (``endings``). Nothing is reserved
if not enough ends are known. A job that ends before the shadow time may start anywhere. Any other
job may take only the GPUs that the reservation leaves over at that instant. The remaining GPUs are
*barred* to it: they count as taken during its turn. An attempt to preempt (R15) therefore never
takes barred GPUs. It still preempts other jobs as usual (R21).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence

from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity, NodeCapacity, Savepoint
from benchpool_scheduler.core.capacity.placement import find, fits
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.endings import end_s, run_s
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import Worker


def large(info: JobInfo) -> bool:
    """Return whether other jobs may overtake this one, since it needs more than one GPU at once."""
    return info.min_gang.gpus > WHOLE_GPU


class Reservation:
    """Capacity kept for one blocked job.

    Attributes:
        info: The job.
        at_s: Its shadow time, on the clock of the cluster state.
        gpus: Whole GPUs that the job will take, by the node's order.
        leaves: Whole GPUs that jobs ending later may take, by the node's order.
        barred: Number of free GPUs that are hidden from jobs that end later.
    """

    def __init__(
        self,
        info: JobInfo,
        at_s: float,
        capacity: FreeCapacity,
        gpus: dict[int, int],
        leaves: dict[int, int],
    ) -> None:
        self.info = info
        self.at_s = at_s
        self.capacity = capacity
        self.gpus = gpus
        self.leaves = leaves
        self.barred = 0
        self._held: list[tuple[JobInfo, Worker]] = []

    def holds_back(self, info: JobInfo, now_s: float) -> bool:
        """Return True if the job ends too late, or at an unknown time, to use the reserved GPUs."""
        end = end_s(info.job) if info.job.held else run_s(info.job)
        if end is not None and not info.job.held:
            end += now_s
        return end is None or end > self.at_s

    def bar(self) -> None:
        """Mark the reserved GPUs that are free now, except those left over, as taken."""
        if self._held:
            return
        for order in self.gpus:
            node = self.capacity.at(order)
            over = node.free_gpus() - max(0, self.leaves[order])
            if over > 0:
                bar = self.info.with_gpus(over)
                assignment = self.capacity.take(bar, [node])
                self._held.append((bar, assignment.workers[0]))
                self.barred += over

    def open(self) -> None:
        """Free the GPUs that ``bar`` took."""
        for bar, worker in self._held:
            self.capacity.unassign(bar, worker)
        self._held = []
        self.barred = 0

    def started(self, workers: Sequence[Worker], info: JobInfo, now_s: float) -> None:
        """Count a started job against the GPUs left over, if it ends after the shadow time."""
        if not self.holds_back(info, now_s):
            return
        for worker in workers:
            node = self.capacity.by_name.get(worker.node)
            if node is not None and node.order in self.leaves:
                self.leaves[node.order] -= len(worker.gpus)


def reserve(
    state: ClusterState, info: JobInfo, now_s: float, gone: Collection[int]
) -> Reservation | None:
    """Reserve capacity for a blocked job, or return None if not enough ends are known.

    The cluster state is unchanged afterwards. The cost grows with the number of ends up to the
    shadow time. A placement is computed for each doubling of that number.

    Args:
        gone: Ages of jobs that this pass takes workers from.
    """
    trial = _Trial(state, now_s, gone)
    try:
        at_s = trial.first_fit(info)
        if at_s is None:
            return None
        places = find(info, info.least, state.capacity, releasing=True)
        if places is None:
            return None
        gpus: dict[int, int] = {}
        for node in places:
            gpus[node.order] = gpus.get(node.order, 0) + max(1, info.requirements.gpus)
        leaves = {
            order: _free_with_releasing(state.capacity.at(order)) - number
            for order, number in gpus.items()
        }
        return Reservation(info, at_s, state.capacity, gpus, leaves)
    finally:
        trial.go_to(0)


def _free_with_releasing(node: NodeCapacity) -> int:
    return node.free_gpus(releasing=True)


class _Trial:
    """Trial that lets jobs end one after another, in the order of known ends, and can undo it."""

    def __init__(self, state: ClusterState, now_s: float, gone: Collection[int]) -> None:
        self._capacity = state.capacity
        self._soonest_s = now_s + state.policy.grace_s
        self._coming = _leavers(state, now_s, gone)
        self._leavers: list[tuple[float, JobInfo, tuple[Worker, ...], bool]] = []
        self._before: list[Savepoint] = []

    def first_fit(self, info: JobInfo) -> float | None:
        """Let the fewest jobs end that make the job fit. Return when the last of them ends.

        More ends never make the job fit worse. The number is therefore doubled and then found by
        bisection. If the job fits without any end, it waits only for the jobs that are already
        leaving.
        """
        if self._fits_after(info, 0):
            return self._soonest_s
        below, above = 0, 1
        while not self._fits_after(info, above):
            if self._ended < above:
                return None
            below, above = above, above * 2
        above = min(above, self._ended)
        while above - below > 1:
            middle = (below + above) // 2
            if self._fits_after(info, middle):
                above = middle
            else:
                below = middle
        self.go_to(above)
        return self._leavers[above - 1][0]

    def _fits_after(self, info: JobInfo, ends: int) -> bool:
        self.go_to(ends)
        return fits(info, info.least, self._capacity, releasing=True)

    def go_to(self, ends: int) -> None:
        """Let exactly ``ends`` jobs have ended, or all jobs if there are fewer."""
        if ends < self._ended:
            self._capacity.rollback(self._before[ends])
            del self._before[ends:]
        while self._ended < ends:
            if self._ended == len(self._leavers):
                leaver = next(self._coming, None)
                if leaver is None:
                    return
                self._leavers.append(leaver)
            _, info, workers, fresh = self._leavers[self._ended]
            self._before.append(self._capacity.savepoint())
            for worker in workers:
                (self._capacity.unassign if fresh else self._capacity.release)(info, worker)

    @property
    def _ended(self) -> int:
        return len(self._before)


def _leavers(
    state: ClusterState, now_s: float, gone: Collection[int]
) -> Iterator[tuple[float, JobInfo, tuple[Worker, ...], bool]]:
    """Yield (end, job, its workers, whether this pass started it) of known ends, soonest first."""
    kept = (
        (end, info, info.job.held, False)
        for end, info in state.endings.after(now_s)
        if info.age not in gone
    )
    fresh = [
        (now_s + run, entry.info, part.workers, True)
        for entry in state.changes.assigned.values()
        if entry.info.queued and (run := run_s(entry.info.job)) is not None
        for part in entry.parts
    ]
    fresh.sort(key=lambda leaver: (leaver[0], leaver[1].age))
    return heapq.merge(kept, fresh, key=lambda leaver: (leaver[0], leaver[1].age))
