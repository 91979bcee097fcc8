"""Preempt commands of a pass, by job and claimant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from benchpool_scheduler.core.capacity.assignment import Departure
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import JobId, Preempt, Worker


class PreemptCommands(dict[tuple[JobId, JobId | None], Preempt]):
    """Preempt commands of this pass: one per job and claimant."""

    def add(self, unit: PreemptionUnit, claimant: JobId | None, rule: str, lost: float) -> None:
        """Add a unit to the command for a claimant, or for benches if None.

        Args:
            lost: Cost of taking the unit, in GPU-seconds (R18).
        """
        job = unit.info.job.id
        before = self.get((job, claimant))
        workers: tuple[Worker, ...] = unit.workers
        if before is not None:
            workers, lost = (*before.workers, *workers), before.lost_gpu_s + lost
        self[job, claimant] = Preempt(job, workers, claimant, rule, lost)

    def spare(self, unit: PreemptionUnit, lost: float) -> None:
        """Remove a unit that stays from its command.

        Args:
            lost: Cost that taking the unit had, in GPU-seconds.
        """
        for key in self._of(unit.info):
            before = self[key]
            workers = tuple(worker for worker in before.workers if worker not in unit.workers)
            if workers:
                self[key] = replace(before, workers=workers, lost_gpu_s=before.lost_gpu_s - lost)
            else:
                del self[key]

    def move(self, info: JobInfo) -> None:
        """Mark the commands of a preempted job as a move (R18)."""
        for key in self._of(info):
            self[key] = replace(self[key], rule="R18")

    def leaving_for(self, claimant: JobInfo, more: Iterable[PreemptionUnit]) -> set[Departure]:
        """Return the departures for a claimant, with those of these units."""
        own = (one for one in self.values() if one.claimant == claimant.job.id)
        before = {Departure(one.job, worker) for one in own for worker in one.workers}
        return before.union(*(unit.departures for unit in more))

    def _of(self, info: JobInfo) -> list[tuple[JobId, JobId | None]]:
        return [key for key in self if key[0] == info.job.id]
