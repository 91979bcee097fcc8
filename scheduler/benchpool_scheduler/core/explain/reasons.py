"""Reason why a job waits: the one that is true after the pass, with numbers and a remedy (R22).

The reasons are checked in order, and the first that applies is the binding one:

- the job can never run;
- a limit or quota of its project or of an ancestor;
- it was promised GPUs that other jobs are leaving;
- the free capacity.

Advice is checked on the same state before it is given. Sentences name only the reader's own project
and its ancestors, never other users' jobs. If a reason is about another job, the job's name is kept
separate (``NamedJob``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from benchpool_scheduler.core.capacity.assignment import Assignment
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.explain.bindings import guarantee_reached, impossible, limit_reached
from benchpool_scheduler.core.explain.closed_nodes import with_closed_nodes
from benchpool_scheduler.core.explain.remedies import Remedies
from benchpool_scheduler.core.explain.sentences import Number, all_plain, measured, plain
from benchpool_scheduler.core.explain.short_nodes import short_of_cpus_or_memory
from benchpool_scheduler.core.fairness.scheduling_queue import Cursor
from benchpool_scheduler.core.jobs.amounts import RESOURCES, WHOLE_GPU
from benchpool_scheduler.core.jobs.equivalence import Signature
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import JobId, NodeName, ReasonCode, WaitReason
from benchpool_scheduler.core.preemption.candidates import VictimCandidates
from benchpool_scheduler.core.preemption.victims import PreemptionAttempt
from benchpool_scheduler.phrases import at_most, count, duration, exactly, is_are


def reasons_of(
    state: ClusterState,
    candidates: VictimCandidates,
    waiting: Iterable[Cursor],
    renounced: Mapping[int, str],
) -> dict[JobId, WaitReason]:
    """Return the reason of every job that waits after the pass. Equal jobs share one.

    Args:
        renounced: Why a job preempts no other job, by its age.
    """
    explain = Explanation(state, candidates, renounced)
    reasons = {
        job: explain.nominated(start)
        for job, entry in state.changes.assigned.items()
        if entry.info.queued and (start := entry.waits) is not None
    }
    known: dict[Signature, WaitReason] = {}
    for cursor in sorted(waiting, key=lambda cursor: cursor.info.request):
        if cursor.workers:
            continue
        signature = cursor.equal_jobs.signature
        if signature not in known:
            reason = explain.waiting(cursor.info)
            if explain.some_closed:
                reason = with_closed_nodes(state, cursor.info, reason, candidates.now_s)
            known[signature] = reason
        reasons.update(dict.fromkeys(cursor.left(), known[signature]))
    return reasons


class Explanation:
    """Explanation of one finished pass."""

    def __init__(
        self, state: ClusterState, candidates: VictimCandidates, renounced: Mapping[int, str]
    ) -> None:
        self.state = state
        self.candidates = candidates
        self.renounced = renounced
        self.usage = state.usage
        self.remedies = Remedies(state)
        self.nominated_idle = self._nominated_idle()
        self.some_closed = any(node.closed for node in state.nodes)
        self._failed_unprotected: dict[tuple[object, ...], list[tuple[int, int]]] = {}

    @cached_property
    def unprotected(self) -> VictimCandidates:
        """Return the victims that could be taken if no job were protected."""
        return VictimCandidates(self.state.units, self.candidates.now_s, protected=True)

    def _nominated_idle(self) -> dict[NodeName, int]:
        """Return the number of idle GPUs kept for jobs that wait for departures, by node."""
        kept: dict[NodeName, int] = {}
        parts = [part for entry in self.state.changes.assigned.values() for part in entry.starts()]
        for part in parts:
            for worker in part.workers if part.after else ():
                node = self.state.capacity.by_name[worker.node]
                kept[worker.node] = kept.get(worker.node, 0) + node.idle(worker.gpus)
        return kept

    def nominated(self, start: Assignment) -> WaitReason:
        """Explain a job that starts as soon as other jobs have left."""
        gpus = sum(len(worker.gpus) for worker in start.workers)
        jobs, grace = len(start.jobs_after), self.state.policy.grace_s
        return WaitReason(
            ReasonCode.WAITING_FOR_VICTIMS,
            f"{count(gpus, 'GPU')} {is_are(gpus)} promised to it; {count(jobs, 'job')} "
            f"{is_are(jobs)} saving and stopping, which takes at most {exactly(grace)}",
            {"gpus": gpus, "jobs": jobs, "grace_s": grace},
            "nothing to do: it starts by itself when they have stopped",
        )

    def waiting(self, info: JobInfo) -> WaitReason:
        """Explain a job that got nothing in this pass."""
        state = self.state
        if not state.possible(info):
            return impossible(state, info)
        if (over := state.ledger.over_limit(info, info.min_gang, releasing=False)) is not None:
            return limit_reached(state, info, *over)
        if (over := state.ledger.over_guarantee(info, info.min_gang, releasing=False)) is not None:
            return guarantee_reached(state, info, *over)
        return self._capacity(info)

    def _capacity(self, info: JobInfo) -> WaitReason:
        """Explain a job that only lacks free GPUs."""
        free = self.state.capacity.free(info.requirements)
        numbers = self._numbers(info, free)
        if self._fits_with_nominated(info):
            return self._reserved(info, numbers)
        if info.min_gang.gpus <= free * WHOLE_GPU:
            return self._form(info, free, numbers)
        return self._entitlement(info, numbers)

    def _numbers(self, info: JobInfo, free: int) -> dict[str, Number]:
        index = info.branch.index
        asked, held, quota, share = all_plain(
            0,
            info.min_gang.gpus,
            self.state.ledger.held[index].gpus,
            self.usage.guarantees[index][0],
            self.usage.shares[index].gpus,
        )
        return {
            "asked": asked,
            "free": free,
            "total": self.state.total.gpus // WHOLE_GPU,
            "project": info.branch.name,
            "held": held,
            "quota": quota,
            "fair_share": share,
        }

    def _opening(self, info: JobInfo, numbers: dict[str, Number]) -> str:
        asked, free = measured(info.min_gang.gpus, 0), numbers["free"]
        return f"waits for {asked}: {free} of {numbers['total']} {is_are(free)} free"

    def _fits_with_nominated(self, info: JobInfo) -> bool:
        """Return whether the job would fit if no GPUs were promised to other jobs (R20)."""
        if not info.requirements.gpus or not any(self.nominated_idle.values()):
            return False
        capacity, requirements = self.state.capacity, info.requirements
        slots = capacity.holds(requirements)
        for name, kept in self.nominated_idle.items():
            if capacity.may_use(requirements, name):
                free = capacity.by_name[name].free_gpus()
                slots += (free + kept) // requirements.gpus - free // requirements.gpus
        return slots >= info.least

    def _reserved(self, info: JobInfo, numbers: dict[str, Number]) -> WaitReason:
        kept = sum(self.nominated_idle.values())
        return WaitReason(
            ReasonCode.RESERVED_FOR_OTHERS,
            f"{self._opening(info, numbers)}, and {kept} more {is_are(kept)} promised to jobs "
            "that go first",
            numbers | {"promised": kept},
            self.remedies.advice(info, numbers),
        )

    def _form(self, info: JobInfo, free: int, numbers: dict[str, Number]) -> WaitReason:
        """Explain a job for which enough GPUs are free, but not in the form that it needs."""
        capacity, workers, each = (
            self.state.capacity,
            info.least,
            measured(info.request.gpus, 0),
        )
        most = capacity.most_free(info.requirements)
        if info.requirements.gpus > most:
            return WaitReason(
                ReasonCode.FRAGMENTED,
                f"needs {each} on one node; {free} are free, at most {most} of them on one node",
                numbers | {"most_on_one_node": most},
                self.remedies.advice(info, numbers),
            )
        fitting = capacity.holds(info.requirements)
        if workers > 1 and fitting:
            level = info.spec.required_level
            where = "" if level is None else f" within one {level}"
            return WaitReason(
                ReasonCode.GANG_INCOMPLETE,
                f"needs {workers} workers of {each} at once{where}; {fitting} would fit now"
                + (" in all" if where else ""),
                numbers | {"workers": workers, "workers_that_fit": fitting, "level": level},
                self.remedies.advice(info, numbers),
            )
        return short_of_cpus_or_memory(self.state, info, numbers)

    def _entitlement(self, info: JobInfo, numbers: dict[str, Number]) -> WaitReason:
        """Explain a job for which too few GPUs are free: whether it may preempt other jobs."""
        opening = self._opening(info, numbers)
        if (seconds := self._protected_for(info)) is not None:
            until = f"for another {at_most(seconds)}" if seconds else "until their hour ends"
            return WaitReason(
                ReasonCode.VICTIMS_PROTECTED,
                f"{opening}; the jobs that it would preempt are protected {until}",
                numbers | {"protected_for_s": seconds or None},
                "nothing to do: it is considered again when the protection ends",
            )
        if (seconds := self._delayed_for(info)) is not None:
            return WaitReason(
                ReasonCode.CLAIM_DELAYED,
                f"{opening}; long-running jobs are preempted for it in {at_most(seconds)}",
                numbers | {"delayed_for_s": seconds},
                "nothing to do: it starts then, or as soon as enough GPUs become free",
            )
        if info.long and not self._within_quota(info):
            hours = info.job.attained_at(self.candidates.now_s) / 3600
            return WaitReason(
                ReasonCode.LONG_RUNNING,
                f"{opening}; it has run for {duration(hours * 3600)}, so it preempts no jobs "
                "beyond the guaranteed quota",
                numbers | {"ran_h": round(hours, 3)},
                self.remedies.advice(info, numbers),
            )
        if (over := self._over_share(info)) is not None:
            return self._share_reached(info, over, numbers)
        why = self.renounced.get(info.age, "the jobs that it may preempt would not free enough")
        return WaitReason(
            ReasonCode.POOL_FULL,
            f"{opening}; {why}",
            numbers,
            self.remedies.advice(info, numbers),
        )

    def _share_reached(self, info: JobInfo, index: int, numbers: dict[str, Number]) -> WaitReason:
        usage, branch = self.usage, self.state.tree.branches[index]
        resource = usage.first_over(index, info.min_gang)
        held = plain(self.state.ledger.held[index][resource], resource)
        share = plain(usage.shares[index][resource], resource)
        quota = usage.guarantees[index][resource]
        guaranteed = None if quota is None else plain(quota, resource)
        of = "" if resource == 0 else f" {('CPUs', 'GiB of memory')[resource - 1]}"
        ours = "its unlimited quota" if guaranteed is None else f"{guaranteed:g}{of} guaranteed"
        holds = f"{held:g} of {ours}"
        if guaranteed is not None and held > guaranteed:
            holds = f"{held:g}{of}, more than the {guaranteed:g} guaranteed"
        text = f"{self._opening(info, numbers)}; project {branch.name} holds {holds}"
        if held < share:
            asked = plain(info.min_gang[resource], resource)
            text += f", and with {asked:g} more it would exceed its fair share of {share:g}"
        elif share != guaranteed:
            text += f", and its fair share is {share:g}"
        numbers |= {"level": branch.name, "held": held, "quota": guaranteed, "fair_share": share}
        numbers |= {"resource": RESOURCES[resource]}
        advice = self.remedies.advice(info, numbers)
        if "would_start_with" not in numbers and (most := self._most_claimed(info)) > 0:
            numbers["may_claim"] = most
            each = info.requirements.gpus
            number, unit = (most, "GPU") if info.least == 1 else (most // each, "worker")
            smaller = f"{count(number, unit)}{' or fewer' if number > 1 else ''}"
            advice = (
                f"it starts only when {numbers['asked']:g} are free at once, when other jobs need "
                f"fewer; with {smaller} it may reclaim GPUs within its project's share"
            )
        return WaitReason(ReasonCode.FAIR_SHARE_REACHED, text, numbers, advice)

    def _most_claimed(self, info: JobInfo) -> int:
        """Return the most GPUs, fewer than requested, with which the job might claim (R15), or 0.

        Counts whole GPUs. For a gang, only GPUs of complete workers within the amount due count.
        """
        each = info.requirements.gpus
        if info.min_gang.gpus <= WHOLE_GPU or not each or info.long or info.requirements.part:
            return 0
        due = self.usage.room_below(info.branch.path) // WHOLE_GPU
        most = min(due, info.min_gang.gpus // WHOLE_GPU - 1)
        return max(0, most if info.least == 1 else most // each * each)

    def _over_share(self, info: JobInfo) -> int | None:
        """Return the lowest level at which the job would exceed both share and quota, or None."""
        usage, core = self.usage, info.min_gang
        for index in reversed(info.branch.path):
            if not usage.within_share(index, core) and not usage.within_quota(index, core):
                return index
        return None

    def _protected_for(self, info: JobInfo) -> float | None:
        """Return the seconds until protection ends, if only protection is in the way, else None.

        Returns 0 for the hourly bound, and None if the attempt would fail without protection too.
        """
        state, units = self.state, self.state.units
        attempt = PreemptionAttempt(state, self.unprotected, info, info.least)
        if not attempt.entitled.rightful() or not self._protected_may_pay(attempt):
            return None
        requirements = info.requirements
        alike = (info.branch.index, info.spec.priority, info.least, info.spec.preemptible)
        failed = self._failed_unprotected.setdefault(
            (*alike, requirements._replace(cpus=0, memory=0)), []
        )
        if any(
            cpus <= requirements.cpus and memory <= requirements.memory for cpus, memory in failed
        ):
            return None
        if not attempt.search(best=False, hint=state.protected_at.get(info.signature)):
            failed.append((requirements.cpus, requirements.memory))
            return None
        if attempt.victims:
            state.protected_at[info.signature] = attempt.victims[0].unit.workers[0].node
        ends = [
            victim.unit.protected_until_s
            for victim in attempt.victims
            if victim.unit in units.protected.get(victim.unit.info.branch.index, ())
        ]
        attempt.undo()
        waits = [end - self.candidates.now_s for end in ends if end < float("inf")]
        return max(0.0, *waits) if waits else 0.0 if ends else None

    def _protected_may_pay(self, attempt: PreemptionAttempt) -> bool:
        """Return whether a protected job could be taken, alone or after lower jobs of its own."""
        held = self.state.units.protected
        if attempt.entitled.own_gives():
            return bool(held)
        mine, priority = attempt.info.branch.index, attempt.info.spec.priority
        if mine in held and (self._lowest[mine] < priority or mine in self._with_long):
            return True
        return any(
            attempt.entitled.may_give(index)
            and attempt.entitled.lawful(next(iter(units))) is not None
            for index, units in held.items()
            if index != mine
        )

    @cached_property
    def _lowest(self) -> dict[int, int]:
        """Return the lowest priority of a protected job, by project."""
        held = self.state.units.protected.items()
        return {index: min(c.info.spec.priority for c in units) for index, units in held}

    @cached_property
    def _with_long(self) -> set[int]:
        """Return the projects with protected long-running jobs."""
        held = self.state.units.protected.items()
        return {index for index, units in held if any(c.info.long for c in units)}

    def _delayed_for(self, info: JobInfo) -> float | None:
        """Return the seconds until the job's claim on long-running jobs may proceed, or None."""
        if not self.state.units.long_running:
            return None
        attempt = PreemptionAttempt(self.state, self.candidates, info, info.least)
        if not attempt.is_patient():
            return None
        if attempt.search(best=False):
            attempt.undo()
        until_s = attempt.delayed_until_s
        return None if until_s is None else until_s - self.candidates.now_s

    def _within_quota(self, info: JobInfo) -> bool:
        return all(self.usage.within_quota(index, info.min_gang) for index in info.branch.path)
