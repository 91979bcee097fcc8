"""Why a job waits: one reason that is true after the pass, with numbers and a remedy (R22).

The reasons are asked in order, and the first that holds is the binding one: it can never run; a
limit or quota of its project or of one above it; it was promised room that others are leaving;
the room itself. Advice is checked on the same board before it is given. Sentences name only the
reader's own project and those above it, never other people's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchpool_scheduler.core.bindings import guarantee_reached, impossible, limit_reached
from benchpool_scheduler.core.board import Board
from benchpool_scheduler.core.model import JobId, Reason, ReasonCode
from benchpool_scheduler.core.placement import acceptable, find
from benchpool_scheduler.core.room import NodeRoom, Taken
from benchpool_scheduler.core.sentences import Number, count, is_are, measured
from benchpool_scheduler.core.victims import Chunks, Claim
from benchpool_scheduler.core.works import Work


def reasons_of(board: Board, chunks: Chunks, waiting: Iterable[Work]) -> dict[JobId, Reason]:
    """Return the reason of every job that waits after the pass."""
    explain = Explanation(board, chunks)
    reasons = {
        job: explain.promised(start)
        for job, entry in board.decided.items()
        if entry.work.queued and (start := entry.waits) is not None
    }
    known: dict[tuple[object, ...], Reason] = {}
    for work in waiting:
        if work.shape not in known:
            known[work.shape] = explain.waiting(work)
        reasons[work.job.id] = known[work.shape]
    return reasons


class Explanation:
    """Explains one finished pass."""

    def __init__(self, board: Board, chunks: Chunks) -> None:
        self.board = board
        self.chunks = chunks
        self.set_aside = self._set_aside()

    def _set_aside(self) -> dict[str, int]:
        """Return by node how many idle GPUs are kept for jobs that wait for others to leave."""
        busy = {gpu for work in self.board.works for worker in work.job.held for gpu in worker.gpus}
        kept: dict[str, int] = {}
        parts = [part for entry in self.board.decided.values() for part in entry.starts()]
        for part in parts:
            for worker in part.workers if part.after else ():
                idle = sum(gpu not in busy for gpu in worker.gpus)
                kept[worker.node] = kept.get(worker.node, 0) + idle
        return kept

    def promised(self, start: Taken) -> Reason:
        """Explain a job that has room as soon as others have left."""
        gpus = sum(len(worker.gpus) for worker in start.workers)
        jobs, grace = len(start.after), self.board.policy.grace_s
        return Reason(
            ReasonCode.WAITING_FOR_VICTIMS,
            f"{count(gpus, 'GPU')} {is_are(gpus)} promised to it; {count(jobs, 'job')} "
            f"{is_are(jobs)} saving and leaving, which takes at most {grace:g} s",
            {"gpus": gpus, "jobs": jobs, "grace_s": grace},
            "nothing to do: it starts by itself when they have left",
        )

    def waiting(self, work: Work) -> Reason:
        """Explain a job that got nothing in this pass."""
        board = self.board
        if not board.possible(work):
            return impossible(board, work)
        if (over := board.ledger.over_limit(work, work.core, soon=False)) is not None:
            return limit_reached(board, work, *over)
        if (over := board.ledger.over_guarantee(work, work.core, soon=False)) is not None:
            return guarantee_reached(board, work, *over)
        return self._room(work)

    def _room(self, work: Work) -> Reason:
        """Explain a job that only lacks room."""
        nodes = acceptable(work, self.board.room, self.board.topology)
        free = sum(node.free_gpus() for node in nodes)
        numbers = self._numbers(work, free)
        if self._fits_with_set_aside(work, nodes):
            return self._reserved(work, numbers)
        if work.core.gpus <= free:
            return self._form(work, nodes, free, numbers)
        return self._entitlement(work, numbers)

    def _numbers(self, work: Work, free: int) -> dict[str, Number]:
        index = work.branch.index
        return {
            "asked": work.core.gpus,
            "free": free,
            "total": self.board.total.gpus,
            "project": work.branch.name,
            "held": self.board.ledger.held[index].gpus,
            "quota": work.branch.quota[0],
            "fair_share": self.board.standing.shares[index].gpus,
        }

    def _opening(self, work: Work, numbers: dict[str, Number]) -> str:
        verb = "is" if numbers["free"] == 1 else "are"
        asked = count(work.core.gpus, "GPU")
        return f"waits for {asked}: {numbers['free']} of {numbers['total']} {verb} free"

    def _fits_with_set_aside(self, work: Work, nodes: Sequence[NodeRoom]) -> bool:
        """Tell whether it would fit if nothing were promised to others (R20)."""
        if not work.need.gpus or not any(self.set_aside.values()):
            return False
        idle = [node.free_gpus() + self.set_aside.get(node.node.name, 0) for node in nodes]
        return sum(gpus // work.need.gpus for gpus in idle) >= work.job.min_workers

    def _reserved(self, work: Work, numbers: dict[str, Number]) -> Reason:
        kept = sum(self.set_aside.values())
        return Reason(
            ReasonCode.RESERVED_FOR_OTHERS,
            f"{self._opening(work, numbers)}, and {kept} more {is_are(kept)} promised to jobs "
            "that go first",
            numbers | {"promised": kept},
            self._remedy(work, numbers),
        )

    def _form(
        self, work: Work, nodes: Sequence[NodeRoom], free: int, numbers: dict[str, Number]
    ) -> Reason:
        """Explain a job for which enough is free, yet not in the form that it needs."""
        workers, each = work.job.min_workers, count(work.need.gpus, "GPU")
        most = max((node.free_gpus() for node in nodes), default=0)
        if work.need.gpus > most:
            return Reason(
                ReasonCode.FRAGMENTED,
                f"needs {each} on one node; {free} are free, at most {most} of them on one node",
                numbers | {"most_on_one_node": most},
                self._remedy(work, numbers),
            )
        fit = sum(node.slots(work.need, soon=False) for node in nodes)
        if workers > 1 and fit:
            level = work.job.required_level
            where = "" if level is None else f" within one {level}"
            return Reason(
                ReasonCode.GANG_INCOMPLETE,
                f"needs {workers} workers of {each} at once{where}; {fit} would fit now"
                + (" in all" if where else ""),
                numbers | {"workers": workers, "workers_that_fit": fit, "level": level},
                self._remedy(work, numbers),
            )
        return Reason(
            ReasonCode.POOL_FULL,
            f"needs {measured(work.need.cpus, 1)} and {measured(work.need.memory, 2)} "
            "on the node of its GPUs; no node has them free",
            numbers,
            "it starts when other jobs end, or sooner with fewer CPUs or less memory",
        )

    def _entitlement(self, work: Work, numbers: dict[str, Number]) -> Reason:
        """Explain a job for which too little is free: may it take room from others?"""
        opening = self._opening(work, numbers)
        if (seconds := self._protected_for(work)) is not None:
            until = f"for another {seconds:.0f} s" if seconds else "until their hour is over"
            return Reason(
                ReasonCode.VICTIMS_PROTECTED,
                f"{opening}; the jobs that would give way are protected {until}",
                numbers | {"protected_for_s": seconds or None},
                "nothing to do: it is looked at again when the protection ends",
            )
        if (over := self._over_share(work)) is not None:
            return self._share_reached(work, over, numbers)
        return Reason(
            ReasonCode.POOL_FULL,
            f"{opening}; what others hold beyond their due would not make enough room",
            numbers,
            self._remedy(work, numbers),
        )

    def _share_reached(self, work: Work, index: int, numbers: dict[str, Number]) -> Reason:
        board = self.board
        branch, held = board.tree.branches[index], board.ledger.held[index].gpus
        share, quota = board.standing.shares[index].gpus, branch.quota[0]
        guaranteed = "its unlimited quota" if quota is None else f"{quota} guaranteed"
        text = f"{self._opening(work, numbers)}; project {branch.name} holds {held} of {guaranteed}"
        if held < share:
            text += f", and with {work.core.gpus} more it would pass its fair share of {share}"
        elif share != quota:
            text += f", and its fair share is {share}"
        numbers |= {"level": branch.name, "held": held, "quota": quota, "fair_share": share}
        return Reason(ReasonCode.FAIR_SHARE_REACHED, text, numbers, self._remedy(work, numbers))

    def _over_share(self, work: Work) -> int | None:
        """Return the lowest level that the job would carry past both its share and its quota."""
        standing, core = self.board.standing, work.core
        for index in reversed(work.branch.path):
            if not standing.within_share(index, core) and not standing.within_quota(index, core):
                return index
        return None

    def _protected_for(self, work: Work) -> float | None:
        """Return how long protection is all that stands in the way; 0 for the hourly bound.

        None when the claim would fail without any protection too.
        """
        board, protected = self.board, self.chunks.protected
        if not protected:
            return None
        claim = Claim(board, self.chunks.unprotected(), work, work.job.min_workers)
        if not claim.search():
            return None
        held = [paid.chunk.work for paid in claim.paid if paid.chunk in protected]
        claim.undo()
        default = board.policy.min_runtime_s
        waits = [board.tree.min_runtime_s(w.branch, default) - w.job.ran_s for w in held]
        return max(0.0, *waits) if waits else None

    def _remedy(self, work: Work, numbers: dict[str, Number]) -> str:
        """Return advice that holds: with what it would start now, else that it must wait."""
        if (smaller := self._would_start_with(work)) is not None:
            numbers["would_start_with"] = smaller
            each = " for each worker" if work.job.min_workers > 1 else ""
            return f"it would start now with {count(smaller, 'GPU')}{each}"
        return "it starts by itself when enough GPUs become free"

    def _would_start_with(self, work: Work) -> int | None:
        """Return the most GPUs for each worker with which it would start now, if any."""
        board = self.board
        most = max((node.free_gpus() for node in board.room.nodes), default=0)
        for gpus in range(min(work.need.gpus - 1, most), 0, -1):
            smaller = replace(work, need=work.need._replace(gpus=gpus))
            workers = work.job.min_workers
            fits = find(smaller, workers, board.room, board.topology, soon=False) is not None
            if fits and board.ledger.over_limit(smaller, smaller.core, soon=False) is None:
                return gpus
        return None
