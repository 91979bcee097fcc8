"""Which jobs run above their project's quota, kept from pass to pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from benchpool_scheduler.core.model import Activity, JobId, Preempt
from benchpool_scheduler.core.works import Work

if TYPE_CHECKING:
    from benchpool_scheduler.core.board import Board


class OverQuota:
    """Names the jobs that hold GPUs above their project's quota.

    A project's quota covers its jobs in the order in which it would keep them: non-preemptible,
    then priority, then what has not run long, then age. What is known of a project stands until its
    running jobs change.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, frozenset[JobId]]] = {}

    def after(self, board: Board, preempts: Iterable[Preempt]) -> frozenset[JobId]:
        """Return the jobs that are above their quota once a pass's commands are carried out."""
        lost: dict[JobId, int] = {}
        for command in preempts:
            lost[command.job] = lost.get(command.job, 0) + len(command.workers)
        touched = {board.works[job].branch.index for job in [*lost, *board.decided]}
        found: list[frozenset[JobId]] = []
        for branch in board.tree.branches:
            if branch.children or branch.quota[0] is None:
                continue
            if branch.index in touched:
                found.append(_over(board, branch.index, lost))
            elif board.running[branch.index]:
                found.append(self._kept(board, branch.index))
        return frozenset().union(*found)

    def _kept(self, board: Board, index: int) -> frozenset[JobId]:
        version = board.versions[index]
        known = self._known.get(index)
        if known is None or known[0] != version:
            known = self._known[index] = version, _over(board, index, {})
        return known[1]


def _over(board: Board, index: int, lost: Mapping[JobId, int]) -> frozenset[JobId]:
    quota = board.tree.branches[index].quota[0] or 0
    if board.ledger.held[index].gpus <= quota:
        return frozenset()
    works = set(board.running[index])
    works.update(e.work for e in board.decided.values() if e.work.branch.index == index)
    holding = [(work, _gpus_after(board, work, lost)) for work in works]
    covered = 0
    over: list[JobId] = []
    for work, gpus in sorted(holding, key=lambda entry: _worth(entry[0])):
        covered += gpus
        if gpus and covered > quota:
            over.append(work.job.id)
    return frozenset(over)


def _gpus_after(board: Board, work: Work, lost: Mapping[JobId, int]) -> int:
    """Return what the job holds; workers that wait for others to leave do not run yet."""
    job = work.job
    workers = len(job.held) if job.activity is Activity.RUNNING else 0
    if (decided := board.decided.get(job.id)) is not None:
        workers += sum(len(part.workers) for part in decided.starts() if not part.after)
    return work.need.gpus * (workers - lost.get(job.id, 0))


def _worth(work: Work) -> tuple[bool, int, bool, int]:
    return work.job.preemptible, -work.job.priority, work.long, work.age
