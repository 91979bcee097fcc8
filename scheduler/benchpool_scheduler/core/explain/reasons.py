"""Why a job waits: one reason that is true after the pass, with numbers and a remedy (R22).

The reasons are asked in order, and the first that holds is the binding one: it can never run; a
limit or quota of its project or of one above it; it was promised room that others are leaving;
the room itself. Advice is checked on the same board before it is given. Sentences name only the
reader's own project and those above it, never other people's work.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from benchpool_scheduler.core.capacity.feasibility import beyond_limit, beyond_quota
from benchpool_scheduler.core.capacity.free_capacity import Taken
from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.cluster.cluster_state import Board
from benchpool_scheduler.core.explain.bindings import guarantee_reached, limit_reached, never_fits
from benchpool_scheduler.core.explain.sentences import Number, measured, plain
from benchpool_scheduler.core.fairness.scheduling_queue import Waiter
from benchpool_scheduler.core.jobs.amounts import RESOURCES, WHOLE_GPU
from benchpool_scheduler.core.jobs.equivalence import Shape
from benchpool_scheduler.core.jobs.job_info import Fit, Work
from benchpool_scheduler.core.model import JobId, NodeName, Reason, ReasonCode
from benchpool_scheduler.core.preemption.candidates import Givers
from benchpool_scheduler.core.preemption.victims import Claim
from benchpool_scheduler.phrases import count, is_are


def reasons_of(board: Board, givers: Givers, waiting: Iterable[Waiter]) -> dict[JobId, Reason]:
    """Return the reason of every job that waits after the pass; those of one shape share one."""
    explain = Explanation(board, givers)
    reasons = {
        job: explain.promised(start)
        for job, entry in board.decided.items()
        if entry.work.queued and (start := entry.waits) is not None
    }
    known: dict[Shape, Reason] = {}
    for waiter in sorted(waiting, key=lambda waiter: waiter.work.need):
        if waiter.workers:
            continue
        shape = waiter.line.shape
        if shape not in known:
            known[shape] = explain.waiting(waiter.work)
        reasons.update(dict.fromkeys(waiter.left(), known[shape]))
    return reasons


class Explanation:
    """Explains one finished pass."""

    def __init__(self, board: Board, givers: Givers) -> None:
        self.board = board
        self.givers = givers
        self.standing = board.standing
        self.set_aside = self._set_aside()
        self._protected_in_vain: dict[tuple[object, ...], list[tuple[int, int]]] = {}
        self._fitting: dict[tuple[Fit, int], bool] = {}

    @cached_property
    def unprotected(self) -> Givers:
        """Return what could be taken if nothing were protected."""
        return Givers(self.board.chunks, self.givers.now_s, protected=True)

    def _set_aside(self) -> dict[NodeName, int]:
        """Return by node how many idle GPUs are kept for jobs that wait for others to leave."""
        kept: dict[NodeName, int] = {}
        parts = [part for entry in self.board.decided.values() for part in entry.starts()]
        for part in parts:
            for worker in part.workers if part.after else ():
                node = self.board.room.by_name[worker.node]
                kept[worker.node] = kept.get(worker.node, 0) + node.idle(worker.gpus)
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
            return self._impossible(work)
        if (over := board.ledger.over_limit(work, work.core, soon=False)) is not None:
            return limit_reached(board, work, *over)
        if (over := board.ledger.over_guarantee(work, work.core, soon=False)) is not None:
            return guarantee_reached(board, work, *over)
        return self._room(work)

    def _impossible(self, work: Work) -> Reason:
        """Explain a job that can never run; what the nodes forbid stands as long as they do."""
        board = self.board
        if (over := beyond_limit(work, board.tree)) is not None:
            return limit_reached(board, work, *over)
        if (over := beyond_quota(work, board.tree)) is not None:
            return guarantee_reached(board, work, *over)
        known = board.never.get(work.shape)
        if known is None:
            known = board.never[work.shape] = never_fits(board, work)
        return known

    def _room(self, work: Work) -> Reason:
        """Explain a job that only lacks room."""
        free = self.board.room.free(work.fit)
        numbers = self._numbers(work, free)
        if self._fits_with_set_aside(work):
            return self._reserved(work, numbers)
        if work.core.gpus <= free * WHOLE_GPU:
            return self._form(work, free, numbers)
        return self._entitlement(work, numbers)

    def _numbers(self, work: Work, free: int) -> dict[str, Number]:
        index = work.branch.index
        return {
            "asked": plain(work.core.gpus, 0),
            "free": free,
            "total": self.board.total.gpus // WHOLE_GPU,
            "project": work.branch.name,
            "held": plain(self.board.ledger.held[index].gpus, 0),
            "quota": _whole(work.branch.quota[0]),
            "fair_share": plain(self.standing.shares[index].gpus, 0),
        }

    def _opening(self, work: Work, numbers: dict[str, Number]) -> str:
        verb = "is" if numbers["free"] == 1 else "are"
        asked = measured(work.core.gpus, 0)
        return f"waits for {asked}: {numbers['free']} of {numbers['total']} {verb} free"

    def _fits_with_set_aside(self, work: Work) -> bool:
        """Tell whether it would fit if nothing were promised to others (R20)."""
        if not work.fit.gpus or not any(self.set_aside.values()):
            return False
        room, fit = self.board.room, work.fit
        slots = room.holds(fit)
        for name, kept in self.set_aside.items():
            if room.may_use(fit, name):
                free = room.by_name[name].free_gpus()
                slots += (free + kept) // fit.gpus - free // fit.gpus
        return slots >= work.job.min_workers

    def _reserved(self, work: Work, numbers: dict[str, Number]) -> Reason:
        kept = sum(self.set_aside.values())
        return Reason(
            ReasonCode.RESERVED_FOR_OTHERS,
            f"{self._opening(work, numbers)}, and {kept} more {is_are(kept)} promised to jobs "
            "that go first",
            numbers | {"promised": kept},
            self._remedy(work, numbers),
        )

    def _form(self, work: Work, free: int, numbers: dict[str, Number]) -> Reason:
        """Explain a job for which enough is free, yet not in the form that it needs."""
        room, workers, each = self.board.room, work.job.min_workers, measured(work.need.gpus, 0)
        most = room.most_free(work.fit)
        if work.fit.gpus > most:
            return Reason(
                ReasonCode.FRAGMENTED,
                f"needs {each} on one node; {free} are free, at most {most} of them on one node",
                numbers | {"most_on_one_node": most},
                self._remedy(work, numbers),
            )
        fit = room.holds(work.fit)
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
        if (seconds := self._delayed_for(work)) is not None:
            return Reason(
                ReasonCode.CLAIM_DELAYED,
                f"{opening}; long-running jobs give way to it in {seconds:.0f} s",
                numbers | {"delayed_for_s": seconds},
                "nothing to do: it starts then, or as soon as room comes free",
            )
        if work.long and not self._within_quota(work):
            hours = work.job.attained_at(self.givers.now_s) / 3600
            return Reason(
                ReasonCode.LONG_RUNNING,
                f"{opening}; it has run {hours:.1f} h already, so beyond the guaranteed quota it "
                "takes no room from others",
                numbers | {"ran_h": round(hours, 3)},
                self._remedy(work, numbers),
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
        standing, branch = self.standing, self.board.tree.branches[index]
        resource = standing.first_over(index, work.core)
        held = plain(self.board.ledger.held[index][resource], resource)
        share = plain(standing.shares[index][resource], resource)
        quota = branch.quota[resource]
        guaranteed = None if quota is None else plain(quota, resource)
        of = "" if resource == 0 else f" {('CPUs', 'GiB of memory')[resource - 1]}"
        ours = "its unlimited quota" if guaranteed is None else f"{guaranteed:g}{of} guaranteed"
        text = f"{self._opening(work, numbers)}; project {branch.name} holds {held:g} of {ours}"
        if held < share:
            asked = plain(work.core[resource], resource)
            text += f", and with {asked:g} more it would pass its fair share of {share:g}"
        elif share != guaranteed:
            text += f", and its fair share is {share:g}"
        numbers |= {"level": branch.name, "held": held, "quota": guaranteed, "fair_share": share}
        numbers |= {"resource": RESOURCES[resource]}
        return Reason(ReasonCode.FAIR_SHARE_REACHED, text, numbers, self._remedy(work, numbers))

    def _over_share(self, work: Work) -> int | None:
        """Return the lowest level that the job would carry past both its share and its quota."""
        standing, core = self.standing, work.core
        for index in reversed(work.branch.path):
            if not standing.within_share(index, core) and not standing.within_quota(index, core):
                return index
        return None

    def _protected_for(self, work: Work) -> float | None:
        """Return how long protection is all that stands in the way; 0 for the hourly bound.

        None when the claim would fail without any protection too.
        """
        board, chunks = self.board, self.board.chunks
        claim = Claim(board, self.unprotected, work, work.job.min_workers)
        if not claim.entitled.rightful() or not self._protected_may_pay(claim):
            return None
        fit = work.fit
        alike = (work.branch.index, work.job.priority, work.job.min_workers, work.job.preemptible)
        failed = self._protected_in_vain.setdefault((*alike, fit._replace(cpus=0, memory=0)), [])
        if any(cpus <= fit.cpus and memory <= fit.memory for cpus, memory in failed):
            return None
        if not claim.search(best=False, hint=board.protected_at.get(work.shape)):
            failed.append((fit.cpus, fit.memory))
            return None
        if claim.paid:
            board.protected_at[work.shape] = claim.paid[0].chunk.workers[0].node
        ends = [
            paid.chunk.protected_until_s
            for paid in claim.paid
            if paid.chunk in chunks.protected.get(paid.chunk.work.branch.index, ())
        ]
        claim.undo()
        waits = [end - self.givers.now_s for end in ends if end < float("inf")]
        return max(0.0, *waits) if waits else 0.0 if ends else None

    def _protected_may_pay(self, claim: Claim) -> bool:
        """Tell whether anything protected could be taken, first or after lower jobs of its own."""
        held = self.board.chunks.protected
        if claim.entitled.own_gives():
            return bool(held)
        mine, priority = claim.work.branch.index, claim.work.job.priority
        if mine in held and (self._lowest[mine] < priority or mine in self._with_long):
            return True
        return any(
            claim.entitled.may_give(index) and claim.entitled.lawful(next(iter(chunks))) is not None
            for index, chunks in held.items()
            if index != mine
        )

    @cached_property
    def _lowest(self) -> dict[int, int]:
        """Return the lowest priority of a protected job, by project."""
        held = self.board.chunks.protected.items()
        return {index: min(c.work.job.priority for c in chunks) for index, chunks in held}

    @cached_property
    def _with_long(self) -> set[int]:
        """Return the projects with protected long-running work."""
        held = self.board.chunks.protected.items()
        return {index for index, chunks in held if any(c.work.long for c in chunks)}

    def _delayed_for(self, work: Work) -> float | None:
        """Return how long its claim on long-running work still has to wait; None without one."""
        if not self.board.chunks.long_running:
            return None
        claim = Claim(self.board, self.givers, work, work.job.min_workers)
        if not claim.is_patient():
            return None
        if claim.search(best=False):
            claim.undo()
        until_s = claim.delayed_until_s
        return None if until_s is None else until_s - self.givers.now_s

    def _within_quota(self, work: Work) -> bool:
        return all(self.standing.within_quota(index, work.core) for index in work.branch.path)

    def _remedy(self, work: Work, numbers: dict[str, Number]) -> str:
        """Return advice that holds: with what it would start now, else that it must wait."""
        if (smaller := self._would_start_with(work)) is not None:
            numbers["would_start_with"] = smaller
            each = " for each worker" if work.job.min_workers > 1 else ""
            return f"it would start now with {count(smaller, 'GPU')}{each}"
        return "it starts by itself when enough GPUs become free"

    def _would_start_with(self, work: Work) -> int | None:
        """Return the most GPUs for each worker with which it would start now, if any."""
        ledger, workers = self.board.ledger, work.job.min_workers
        for gpus in range(min(work.fit.gpus - 1, self._most_for_one(work)), 0, -1):
            core = work.need._replace(gpus=gpus * WHOLE_GPU).times(workers)
            if ledger.bound(work, core, soon=False) is None and self._fits_with(work, gpus):
                return gpus
        return None

    def _fits_with(self, work: Work, gpus: int) -> bool:
        """Tell whether it would fit now with so many GPUs for each worker."""
        key = work.fit._replace(gpus=gpus), work.job.min_workers
        known = self._fitting.get(key)
        if known is None:
            smaller, room = work.with_gpus(gpus), self.board.room
            known = self._fitting[key] = fits(smaller, work.job.min_workers, room, soon=False)
        return known

    def _most_for_one(self, work: Work) -> int:
        """Return the most GPUs that are free on a node with CPUs and memory for one worker."""
        room, fit = self.board.room, work.fit
        nodes = 0
        for some in room.slots(fit._replace(gpus=1), room.allowed(fit), soon=False).values():
            nodes |= some
        buckets = room.by_free[False]
        return next((gpus for gpus in range(len(buckets) - 1, 0, -1) if buckets[gpus] & nodes), 0)


def _whole(amount: int | None) -> int | float | None:
    return None if amount is None else plain(amount, 0)
