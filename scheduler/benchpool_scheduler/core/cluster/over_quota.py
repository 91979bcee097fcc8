"""GPUs held above a project's quota, by job, kept between passes.

A guarantee from the parent's quota counts as the project's own quota (R5a).

This module is the only source of the fact: job tags, GPU squares and counters show its result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from benchpool_scheduler.core.capacity.assignment import JobAssignment
from benchpool_scheduler.core.fairness.ledger import QuotaLedger
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU, Bounds
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import Activity, GpuId, JobFacts, JobId, Preempt, Worker

Over = dict[JobId, frozenset[GpuId]]
"""GPUs of each job that its project's quota does not cover. Jobs without such GPUs are left out."""


class OverQuota:
    """Computes the GPUs that are held above their project's quota.

    A project's quota covers its jobs in this order: non-preemptible jobs, then by priority, then
    jobs that have not run long, then by age. Leaving workers come last. If a job is covered in
    part, its first workers are covered, and their first GPUs. The result for a project is cached
    until its running jobs change.

    Args:
        running: Running jobs of every project, updated by the caller.
        versions: Version of each project, which rises with every change of its running jobs.
    """

    def __init__(
        self, ledger: QuotaLedger, running: Sequence[Collection[JobInfo]], versions: Sequence[int]
    ) -> None:
        self.ledger = ledger
        self.running = running
        self.versions = versions
        self._known: dict[int, tuple[tuple[int, int], Over]] = {}

    def after(
        self,
        jobs: Mapping[JobId, JobInfo],
        assigned: Mapping[JobId, JobAssignment],
        preempts: Iterable[Preempt],
        guarantees: Sequence[Bounds],
    ) -> Over:
        """Return the GPUs above quota once a pass's commands are carried out.

        Args:
            jobs: Every job, by ID.
            assigned: Workers that the pass gives, by job.
            preempts: Commands of the pass that take workers.
            guarantees: Guaranteed amounts of every project, by age.
        """
        lost: dict[JobId, frozenset[Worker]] = {}
        for command in preempts:
            lost[command.job] = lost.get(command.job, frozenset()).union(command.workers)
        touched = {jobs[job].branch.index for job in [*lost, *assigned]}
        found: Over = {}
        for branch in self.ledger.tree.branches:
            quota = guarantees[branch.index][0]
            if branch.children or quota is None:
                continue
            if branch.index in touched:
                found.update(self._over(branch.index, quota, assigned, lost))
            elif self.running[branch.index]:
                found.update(self._kept(branch.index, quota))
        return found

    def _kept(self, index: int, quota: int) -> Over:
        version = self.versions[index], quota
        known = self._known.get(index)
        if known is None or known[0] != version:
            known = self._known[index] = version, self._over(index, quota, {}, {})
        return known[1]

    def _over(
        self,
        index: int,
        quota: int,
        assigned: Mapping[JobId, JobAssignment],
        lost: Mapping[JobId, frozenset[Worker]],
    ) -> Over:
        if self.ledger.held[index].gpus + self.ledger.releasing[index].gpus <= quota:
            return {}
        infos = set(self.running[index])
        infos.update(e.info for e in assigned.values() if e.info.branch.index == index)
        found: Over = {}
        leaving: list[tuple[JobInfo, Sequence[Worker]]] = []
        for info in sorted(infos, key=_worth):
            job = info.job
            stay, leave = _workers(job, assigned.get(job.id), lost.get(job.id))
            quota = _cover(info, stay, quota, found)
            if leave:
                leaving.append((info, leave))
        for info, leave in leaving:
            quota = _cover(info, leave, quota, found)
        return found


def _cover(info: JobInfo, workers: Sequence[Worker], quota: int, found: Over) -> int:
    """Add the GPUs that the quota does not cover to ``found``. Return the remaining quota."""
    amount = info.request.gpus * len(workers)
    if amount > quota:
        gpus = [gpu for worker in workers for gpu in worker.gpus]
        covered = max(0, quota) // (info.job.fraction or WHOLE_GPU)
        over = frozenset(gpus[covered:] if covered else gpus)
        known = found.get(info.job.id)
        found[info.job.id] = over if known is None else known | over
    return quota - amount


def _workers(
    job: JobFacts, assigned: JobAssignment | None, lost: frozenset[Worker] | None
) -> tuple[Sequence[Worker], Sequence[Worker]]:
    """Return a job's workers that run after the pass, and its leaving workers.

    Workers that wait for departures do not run yet.
    """
    stay: Sequence[Worker] = job.held
    leave: Sequence[Worker] = ()
    if job.activity is not Activity.RUNNING:
        stay, leave = leave, stay
    elif lost:
        stay = [worker for worker in job.held if worker not in lost]
        leave = [worker for worker in job.held if worker in lost]
    if assigned is not None:
        started = [w for part in assigned.starts() if not part.after for w in part.workers]
        stay = [*stay, *started]
    return stay, leave


def _worth(info: JobInfo) -> tuple[bool, int, bool, int]:
    return info.spec.preemptible, -info.spec.priority, info.long, info.age
