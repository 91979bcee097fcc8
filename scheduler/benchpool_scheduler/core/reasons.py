"""Why a job waits: one reason that is true after the pass, with numbers and a remedy (R22).

The reasons are asked in order, and the first that holds is the binding one: it can never run; a
limit or quota of its project or of one above it; it was promised room that others are leaving;
the room itself. Advice is checked on the same board before it is given. Sentences name only the
reader's own project and those above it, never other people's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchpool_scheduler.core.amounts import RESOURCES, UNITS
from benchpool_scheduler.core.board import Board, Decided
from benchpool_scheduler.core.feasibility import beyond_limit, beyond_quota, possible
from benchpool_scheduler.core.model import JobId, Reason, ReasonCode
from benchpool_scheduler.core.placement import acceptable, find
from benchpool_scheduler.core.room import NodeRoom, Room
from benchpool_scheduler.core.victims import Chunks, Claim
from benchpool_scheduler.core.works import Work

Number = int | float | str | None


def reasons_of(board: Board, chunks: Chunks, waiting: Iterable[Work]) -> dict[JobId, Reason]:
    """Return the reason of every job that waits after the pass."""
    explain = Explanation(board, chunks)
    reasons = {
        job: explain.promised(entry)
        for job, entry in board.decided.items()
        if entry.after and entry.work.queued
    }
    known: dict[tuple[object, ...], Reason] = {}
    for work in waiting:
        shape = (work.shape, work.job.workers)
        if shape not in known:
            known[shape] = explain.waiting(work)
        reasons[work.job.id] = known[shape]
    return reasons


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "GPU"), count(2, "GPU")
    ('1 GPU', '2 GPUs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def measured(amount: int, resource: int) -> str:
    """Return an amount of a resource in the reader's units.

    >>> measured(2, 0), measured(2500, 1), measured(1536, 2)
    ('2 GPUs', '2.5 CPUs', '1.5 GiB of memory')
    """
    if resource == 0:
        return count(amount, "GPU")
    value = f"{amount / UNITS[resource]:g}"
    return f"{value} GiB of memory" if resource == 2 else f"{value} CPUs"


class Explanation:
    """Explains one finished pass."""

    def __init__(self, board: Board, chunks: Chunks) -> None:
        self.board = board
        self.chunks = chunks
        self.everything = Room([replace(n, ready=True) for n in board.snapshot.nodes], [])
        self.set_aside = self._set_aside()

    def _set_aside(self) -> dict[str, int]:
        """Return by node how many idle GPUs are kept for jobs that wait for others to leave."""
        busy = {
            gpu
            for work in self.board.works
            if not work.queued
            for worker in work.job.held
            for gpu in worker.gpus
        }
        kept: dict[str, int] = {}
        for entry in self.board.decided.values():
            for worker in entry.workers if entry.after else ():
                idle = sum(gpu not in busy for gpu in worker.gpus)
                kept[worker.node] = kept.get(worker.node, 0) + idle
        return kept

    def promised(self, entry: Decided) -> Reason:
        """Explain a job that has room as soon as others have left."""
        gpus = sum(len(worker.gpus) for worker in entry.workers)
        grace = self.board.policy.grace_s
        who = count(len(entry.after), "job")
        verb = "is" if len(entry.after) == 1 else "are"
        return Reason(
            ReasonCode.WAITING_FOR_VICTIMS,
            f"{count(gpus, 'GPU')} {'is' if gpus == 1 else 'are'} promised to it; "
            f"{who} {verb} saving and leaving, at most {grace:g} s",
            {"gpus": gpus, "jobs": len(entry.after), "grace_s": grace},
            "nothing to do: it starts by itself when they have left",
        )

    def waiting(self, work: Work) -> Reason:
        """Explain a job that got nothing in this pass."""
        board = self.board
        if not possible(work, board.empty, board.tree, board.topology):
            return self._impossible(work)
        if (over := board.ledger.over_limit(work, work.core, soon=False)) is not None:
            return self._limit(work, *over)
        if (over := board.ledger.over_guarantee(work, work.core)) is not None:
            return self._guarantee(work, *over)
        return self._room(work)

    def _impossible(self, work: Work) -> Reason:
        """Explain a job that could not run even if the pool were empty."""
        tree = self.board.tree
        if (over := beyond_limit(work, tree)) is not None:
            return self._limit(work, *over)
        if (over := beyond_quota(work, tree)) is not None:
            return self._guarantee(work, *over)
        nodes = acceptable(work, self.everything, self.board.topology)
        if not nodes and work.job.gpu_models:
            return self._no_model(work)
        if not any(node.slots(work.need, soon=False) for node in nodes):
            return self._larger_than_node(work, nodes)
        workers = work.job.min_workers
        if find(work, workers, self.everything, self.board.topology, soon=False) is None:
            return self._larger_than_pool(work, nodes)
        return self._not_ready(work, nodes)

    def _no_model(self, work: Work) -> Reason:
        wanted = " or ".join(work.job.gpu_models)
        models = sorted({n.gpu_model for n in self.board.snapshot.nodes if n.gpu_model})
        have = ", ".join(models) or "none that is named"
        return Reason(
            ReasonCode.NO_SUCH_MODEL,
            f"asks for the GPU model {wanted}; the pool has {have}",
            {"asked": wanted, "models": have},
            "submit it with a model that the pool has, or with any",
        )

    def _larger_than_node(self, work: Work, nodes: Sequence[NodeRoom]) -> Reason:
        largest = max((node.free_gpus() for node in nodes), default=0)
        if work.need.gpus <= largest:
            need = f"{measured(work.need.cpus, 1)} and {measured(work.need.memory, 2)}"
            text = f"asks for {need} on one node, more than any node has"
            remedy = "submit it with fewer CPUs or less memory for each worker"
        else:
            text = (
                f"asks for {count(work.need.gpus, 'GPU')} on one node; "
                f"the largest node has {largest} for training"
            )
            remedy = (
                f"submit it with at most {count(largest, 'GPU')} for each worker"
                if largest
                else "ask your administrator for GPUs in the training pool"
            )
        return Reason(
            ReasonCode.LARGER_THAN_NODE,
            text,
            {"asked": work.need.gpus, "largest_node": largest},
            remedy,
        )

    def _larger_than_pool(self, work: Work, nodes: Sequence[NodeRoom]) -> Reason:
        fit = sum(node.slots(work.need, soon=False) for node in nodes)
        workers = work.job.min_workers
        level = work.job.required_level
        numbers: dict[str, Number] = {"asked_workers": workers, "workers_that_fit": fit}
        numbers["level"] = level
        if level is not None and fit >= workers:
            return Reason(
                ReasonCode.LARGER_THAN_POOL,
                f"asks for {workers} workers of {count(work.need.gpus, 'GPU')} within one {level}; "
                f"no {level} is that large",
                numbers,
                f"submit it with fewer workers, or without the required {level}",
            )
        return Reason(
            ReasonCode.LARGER_THAN_POOL,
            f"asks for {workers} workers of {count(work.need.gpus, 'GPU')} at once; "
            f"the whole pool has room for {fit}",
            numbers,
            f"submit it with at most {count(fit, 'worker')}",
        )

    def _not_ready(self, work: Work, nodes: Sequence[NodeRoom]) -> Reason:
        away = [n.name for n in self.board.snapshot.nodes if not n.ready]
        asked = work.core.gpus
        return Reason(
            ReasonCode.NO_NODE_READY,
            f"waits for {count(asked, 'GPU')}: {count(len(away), 'node')} that could run it "
            f"{'is' if len(away) == 1 else 'are'} not ready",
            {"asked": asked, "nodes": len(nodes), "nodes_not_ready": len(away)},
            "it starts when the nodes are ready again; ask your administrator",
        )

    def _limit(self, work: Work, index: int, resource: int) -> Reason:
        branch, ledger = self.board.tree.branches[index], self.board.ledger
        limit = branch.limit[resource] or 0
        held = ledger.held[index][resource] + ledger.leaving[index][resource]
        asked = work.core[resource]
        unit = UNITS[resource]
        if asked > limit:
            remedy = (
                f"submit it with at most {measured(limit, resource)} in all, or ask for a higher "
                f"limit of {branch.name}"
            )
        else:
            remedy = (
                f"it can start when {branch.name} has ended "
                f"{measured(held + asked - limit, resource)} of its work, or with a higher limit"
            )
        return Reason(
            ReasonCode.PROJECT_LIMIT,
            f"asks for {measured(asked, resource)}; project {branch.name} holds "
            f"{held / unit:g} of at most {limit / unit:g}",
            {
                "resource": RESOURCES[resource],
                "asked": asked / unit if resource else asked,
                "held": held / unit if resource else held,
                "limit": limit / unit if resource else limit,
                "level": branch.name,
            },
            remedy,
        )

    def _guarantee(self, work: Work, index: int, resource: int) -> Reason:
        branch = self.board.tree.branches[index]
        quota = branch.quota[resource] or 0
        firm = self.board.ledger.firm[index][resource]
        asked, unit = work.core[resource], UNITS[resource]
        return Reason(
            ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA,
            f"asks for {measured(asked, resource)} that nobody may take back; project "
            f"{branch.name} has {firm / unit:g} such of {quota / unit:g} guaranteed",
            {
                "resource": RESOURCES[resource],
                "asked": asked / unit if resource else asked,
                "held": firm / unit if resource else firm,
                "quota": quota / unit if resource else quota,
                "level": branch.name,
            },
            "submit it as preemptible, or wait until other non-preemptible work has ended"
            if asked <= quota
            else "submit it as preemptible, or ask for a larger quota",
        )

    def _room(self, work: Work) -> Reason:
        """Explain a job that only lacks room."""
        nodes = acceptable(work, self.board.room, self.board.topology)
        free = sum(node.free_gpus() for node in nodes)
        numbers = self._numbers(work, free)
        if self._fits_with_set_aside(work, nodes):
            return self._reserved(work, numbers)
        if work.core.gpus <= free:
            return self._shape(work, nodes, numbers)
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
        return (
            f"waits for {count(work.core.gpus, 'GPU')}: "
            f"{numbers['free']} of {numbers['total']} {verb} free"
        )

    def _fits_with_set_aside(self, work: Work, nodes: Sequence[NodeRoom]) -> bool:
        if not work.need.gpus or not self.set_aside:
            return False
        gpus = work.need.gpus
        fit = sum((n.free_gpus() + self.set_aside.get(n.node.name, 0)) // gpus for n in nodes)
        return fit >= work.job.min_workers

    def _reserved(self, work: Work, numbers: dict[str, Number]) -> Reason:
        kept = sum(self.set_aside.values())
        return Reason(
            ReasonCode.RESERVED_FOR_OTHERS,
            f"{self._opening(work, numbers)}, and {kept} more "
            f"{'is' if kept == 1 else 'are'} promised to jobs that go first",
            numbers | {"promised": kept},
            self._remedy(work, numbers),
        )

    def _shape(self, work: Work, nodes: Sequence[NodeRoom], numbers: dict[str, Number]) -> Reason:
        """Explain a job for which enough is free, yet not in the form that it needs."""
        workers = work.job.min_workers
        fit = sum(node.slots(work.need, soon=False) for node in nodes)
        if work.need.gpus and not any(n.free_gpus() >= work.need.gpus for n in nodes):
            most = max((node.free_gpus() for node in nodes), default=0)
            return Reason(
                ReasonCode.FRAGMENTED,
                f"needs {count(work.need.gpus, 'GPU')} on one node; {numbers['free']} are free, "
                f"at most {most} of them on one node",
                numbers | {"most_on_one_node": most},
                self._remedy(work, numbers),
            )
        if workers > 1 and fit:
            level = work.job.required_level
            where = f" within one {level}" if level else ""
            return Reason(
                ReasonCode.GANG_INCOMPLETE,
                f"needs {workers} workers of {count(work.need.gpus, 'GPU')} at once{where}; "
                f"{fit} would fit now",
                numbers | {"workers": workers, "workers_that_fit": fit},
                self._remedy(work, numbers),
            )
        return Reason(
            ReasonCode.POOL_FULL,
            f"needs {measured(work.need.cpus, 1)} and {measured(work.need.memory, 2)} "
            "beside its GPUs on one node; no node has them free",
            numbers,
            "it starts when other jobs end, or sooner with fewer CPUs or less memory",
        )

    def _entitlement(self, work: Work, numbers: dict[str, Number]) -> Reason:
        """Explain a job for which too little is free: may its project take room from others?"""
        over = self._over_share(work)
        opening = self._opening(work, numbers)
        if over is not None:
            branch = self.board.tree.branches[over]
            held = self.board.ledger.held[over].gpus
            share = self.board.standing.shares[over].gpus
            quota = branch.quota[0]
            numbers |= {"level": branch.name, "held": held, "quota": quota, "fair_share": share}
            return Reason(
                ReasonCode.FAIR_SHARE_REACHED,
                f"{opening}; project {branch.name} holds {held} of "
                f"{'unlimited' if quota is None else quota} guaranteed"
                + (f", and its fair share is {share}" if share != quota else ""),
                numbers,
                self._remedy(work, numbers),
            )
        if (seconds := self._protected_for(work)) is not None:
            return Reason(
                ReasonCode.VICTIMS_PROTECTED,
                f"{opening}; jobs that would give way are protected"
                + (f" for another {seconds:.0f} s" if seconds else " by their hourly bound"),
                numbers | {"protected_for_s": seconds or None},
                "nothing to do: it is looked at again when the protection ends",
            )
        return Reason(
            ReasonCode.POOL_FULL,
            f"{opening}; the others hold what is theirs or may not be stopped",
            numbers,
            self._remedy(work, numbers),
        )

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
        if not self.chunks.protected:
            return None
        unprotected = self.chunks.unprotected()
        claim = Claim(self.board, unprotected, work, work.job.min_workers)
        if not claim.search():
            return None
        held = [paid.chunk for paid in claim.paid if paid.chunk in self.chunks.protected]
        claim.undo()
        default = self.board.policy.min_runtime_s
        waits = [
            self.board.tree.min_runtime_s(c.work.branch, default) - c.work.job.ran_s for c in held
        ]
        return max(0.0, *waits) if waits else None

    def _remedy(self, work: Work, numbers: dict[str, Number]) -> str:
        """Return advice that holds: what would start now, else what must become free."""
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
