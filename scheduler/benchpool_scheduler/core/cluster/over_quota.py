"""Which jobs run above their project's quota, kept from pass to pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from benchpool_scheduler.core.capacity.assignment import Decided
from benchpool_scheduler.core.fairness.ledger import Ledger
from benchpool_scheduler.core.jobs.job_info import Work
from benchpool_scheduler.core.model import Activity, JobId, Preempt


class OverQuota:
    """Names the jobs that hold GPUs above their project's quota.

    A project's quota covers its jobs in the order in which it would keep them: non-preemptible,
    then priority, then what has not run long, then age. What is known of a project stands until its
    running jobs change.

    Args:
        running: The running jobs of every project, as they are at any moment.
        versions: By project, a number that rises with every change of them.
    """

    def __init__(
        self, ledger: Ledger, running: Sequence[Collection[Work]], versions: Sequence[int]
    ) -> None:
        self.ledger = ledger
        self.running = running
        self.versions = versions
        self._known: dict[int, tuple[int, frozenset[JobId]]] = {}

    def after(
        self,
        works: Mapping[JobId, Work],
        decided: Mapping[JobId, Decided],
        preempts: Iterable[Preempt],
    ) -> frozenset[JobId]:
        """Return the jobs that are above their quota once a pass's commands are carried out.

        Args:
            works: Every job by its id. ``decided``: what the pass gives to whom.
        """
        lost: dict[JobId, int] = {}
        for command in preempts:
            lost[command.job] = lost.get(command.job, 0) + len(command.workers)
        touched = {works[job].branch.index for job in [*lost, *decided]}
        found: list[frozenset[JobId]] = []
        for branch in self.ledger.tree.branches:
            if branch.children or branch.quota[0] is None:
                continue
            if branch.index in touched:
                found.append(self._over(branch.index, decided, lost))
            elif self.running[branch.index]:
                found.append(self._kept(branch.index))
        return frozenset().union(*found)

    def _kept(self, index: int) -> frozenset[JobId]:
        version = self.versions[index]
        known = self._known.get(index)
        if known is None or known[0] != version:
            known = self._known[index] = version, self._over(index, {}, {})
        return known[1]

    def _over(
        self, index: int, decided: Mapping[JobId, Decided], lost: Mapping[JobId, int]
    ) -> frozenset[JobId]:
        quota = self.ledger.tree.branches[index].quota[0] or 0
        if self.ledger.held[index].gpus <= quota:
            return frozenset()
        works = set(self.running[index])
        works.update(e.work for e in decided.values() if e.work.branch.index == index)
        holding = [(work, _gpus_after(work, decided.get(work.job.id), lost)) for work in works]
        covered = 0
        over: list[JobId] = []
        for work, gpus in sorted(holding, key=lambda entry: _worth(entry[0])):
            covered += gpus
            if gpus and covered > quota:
                over.append(work.job.id)
        return frozenset(over)


def _gpus_after(work: Work, decided: Decided | None, lost: Mapping[JobId, int]) -> int:
    """Return what the job holds; workers that wait for others to leave do not run yet."""
    job = work.job
    workers = len(job.held) if job.activity is Activity.RUNNING else 0
    if decided is not None:
        workers += sum(len(part.workers) for part in decided.starts() if not part.after)
    return work.need.gpus * (workers - lost.get(job.id, 0))


def _worth(work: Work) -> tuple[bool, int, bool, int]:
    return work.job.preemptible, -work.job.priority, work.long, work.age
