"""One pass: takes a snapshot and returns a plan.

    snapshot ── shares ── benches first ── promises ── turns ── reasons ── plan
                (R4-R7)   (R3)             (R20)      (R8-R18)  (R22)

The jobs are tried in order (R11). A job starts on free GPUs if it fits and no limit forbids it
(R8-R10). Otherwise other jobs are moved if that helps (R18), or preempted if the job may claim
(R15-R18). Otherwise it waits and blocks no other job (R9).

Two views of the pool are kept apart. A plain start sees the pool as it is. An attempt to preempt
sees it without the leaving jobs. A job that was promised GPUs keeps them and preempts no job (R20).

There is no search: equal jobs are tried until one fails, and running jobs bound a turn's cost.
"""

from __future__ import annotations

from functools import partial
from itertools import chain

from benchpool_scheduler.core.backfill.backfill import Backfill
from benchpool_scheduler.core.capacity.assignment import Assignment, Departure, departures
from benchpool_scheduler.core.capacity.placement import find
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.explain.held_back import held_back
from benchpool_scheduler.core.explain.reasons import reasons_of
from benchpool_scheduler.core.fairness.queue_usage import QueueUsage
from benchpool_scheduler.core.fairness.scheduling_queue import Cursor, SchedulingQueue
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.equivalence import EquivalenceClass
from benchpool_scheduler.core.jobs.job_info import JobInfo, Requirements
from benchpool_scheduler.core.model import Command, JobId, Plan, Share, Snapshot, Start, WaitReason
from benchpool_scheduler.core.preemption.benches import grows_over_quota, make_way_for_benches
from benchpool_scheduler.core.preemption.candidates import VictimCandidates
from benchpool_scheduler.core.preemption.commands import PreemptCommands
from benchpool_scheduler.core.preemption.consolidation import consolidate
from benchpool_scheduler.core.preemption.reprieve import relocate, reprieve
from benchpool_scheduler.core.preemption.self_defeating import (
    MOST_RENOUNCED,
    Renounced,
    self_defeating,
)
from benchpool_scheduler.core.preemption.undone import doubtful_claims, undone_claims
from benchpool_scheduler.core.preemption.victims import PreemptionAttempt


def decide(snapshot: Snapshot) -> Plan:
    """Return the plan for a snapshot. See ``core`` for an example.

    Raises:
        InvalidInput: The snapshot contradicts itself, e.g. a job names no project.
    """
    return decide_on(ClusterState.of(snapshot), snapshot.now_s)


def decide_on(
    state: ClusterState, now_s: float, *, explain: bool = True, ahead: bool = True
) -> Plan:
    """Return the plan for a kept cluster state, which is unchanged afterwards.

    Args:
        now_s: The instant, on the clock of the jobs' ``as_of_s``, in seconds.
        explain: Include reasons (R22) and GPUs over quota. Without them a pass is shorter.
        ahead: Make no claim that its victim would undo in the next pass.
    """
    before, renounced = state.changes.savepoint(), Renounced()
    try:
        while True:
            run = Pass(state, now_s, renounced)
            run.benches()
            run.nominations()
            run.turns()
            more = Renounced()
            if run.beyond_quota:
                more = self_defeating(state.jobs, run.beyond_quota, run.preempts)
            if not more or len(renounced) >= MOST_RENOUNCED:
                run.reprieve()
                plan = run.plan(explain=explain)
                if len(renounced) >= MOST_RENOUNCED or not ahead or not run.preempts:
                    return plan
                claims = doubtful_claims(state, run.candidates, run.preempts)
                state.changes.rollback(before)
                following = partial(decide_on, state, now_s, explain=False, ahead=False)
                more = undone_claims(state, plan.commands, claims, now_s, following)
                if not more:
                    return plan
            state.changes.rollback(before)
            renounced |= more
    finally:
        state.changes.rollback(before)


class Pass:
    """Steps of one pass. Jobs whose ages are ``renounced`` preempt no other job in it."""

    def __init__(self, state: ClusterState, now_s: float, renounced: Renounced) -> None:
        state.pass_time(now_s)
        self.renounced = renounced
        self.beyond_quota: list[tuple[JobInfo, int]] = []
        self.state = state
        self.usage = state.usage
        self.now_s = now_s
        self.candidates = VictimCandidates(state.units, now_s)
        self.preempts = PreemptCommands()
        self.leaves: set[int] = set()
        self.immovable: set[tuple[Requirements, int]] = set()
        self.delayed_s: list[float] = []
        self.more_to_claim = False
        self.bounded: frozenset[int] = frozenset()
        self.backfill = Backfill(state, now_s)
        # No part refers to the pass, so that all of it is freed as soon as the pass ends.
        hopeless = partial(_hopeless, state, self.usage, self.candidates, self.backfill)
        self.queue = SchedulingQueue(self.usage, state.past, hopeless)

    def benches(self) -> None:
        """Preempt jobs on nodes where benches lack GPUs (R3)."""
        units, self.bounded = make_way_for_benches(self.state, self.candidates)
        for unit in units:
            self._preempt(unit, None, "R3")

    def nominations(self) -> None:
        """Place the jobs that were promised GPUs first, in the order of R11 (R20)."""
        state = self.state
        for _, info in sorted(state.moving.items()):
            self._keep_move(info)
        if not state.nominated:
            return
        nominated = SchedulingQueue(self.usage, state.past, lambda cursor: False)
        for _, info in sorted(state.nominated.items()):
            nominated.put(EquivalenceClass.alone(info, len(info.job.held)))
        while (cursor := nominated.take()) is not None:
            info = cursor.info
            if (assignment := self._keep_nomination(info)) is not None:
                state.changes.start(info, assignment)
                nominated.changed(info.branch.path)
                self._wants_more(info, cursor.workers + len(assignment.workers))
            elif info.queued:  # a running job grows in its turn
                self.queue.put(EquivalenceClass.alone(info))

    def _keep_move(self, info: JobInfo) -> None:
        """Keep the new places of a job that is leaving its old ones."""
        if (assignment := self.state.capacity.take_nominated(info, info.job.nominated)) is not None:
            own = departures(info, info.job.held)
            self.state.changes.start(info, assignment.behind(own))

    def _keep_nomination(self, info: JobInfo) -> Assignment | None:
        state, job = self.state, info.job
        if info.age in self.leaves:
            return None
        least = info.min_gang if info.queued else info.request
        if state.ledger.bound(info, least, releasing=True) is not None:
            return None
        amounts = info.request.times(len(job.nominated))
        whole = info.least <= len(job.held) + len(job.nominated) <= info.spec.workers
        if whole and state.ledger.bound(info, amounts, releasing=True) is None:
            assignment = state.capacity.take_nominated(info, job.nominated)
            if assignment is not None:
                return self._behind_limit(info, assignment)
        return self._take(info, info.least, releasing=True) if info.queued else None

    def turns(self) -> None:
        """Try every waiting job, then the jobs that could grow."""
        for equal_jobs in self.state.waiting:
            self.queue.put(equal_jobs)
        self._take_turns()
        while self.queue.failed and self.more_to_claim:
            self._look_again()
            self._take_turns()
        self.backfill.close()

    def _take_turns(self) -> None:
        self.more_to_claim = False
        while (cursor := self.queue.take()) is not None:
            if cursor.workers and not self._still_grows(cursor):
                continue
            if not self.backfill.face(cursor) or not self._turn(cursor):
                self._reserve_or_skip(cursor)

    def _still_grows(self, cursor: Cursor) -> bool:
        """Return whether the job has as many workers as when it was queued."""
        info, workers = cursor.info, self.state.changes.workers_of(cursor.info)
        return info.age not in self.leaves and workers == cursor.workers

    def _reserve_or_skip(self, cursor: Cursor) -> None:
        """Reserve for a job that did not start (R14), or skip it behind a reservation."""
        self.backfill.blocked(cursor, self.leaves)
        shorter = self.backfill.skip(cursor)
        if shorter is None:
            self.queue.fail(cursor)
        elif shorter:
            self.queue.put_back(cursor)

    def reprieve(self) -> None:
        """Spare the victims that are no longer needed, or move them elsewhere (R18)."""
        state = self.state
        for unit in reprieve(state):
            self.preempts.spare(unit, self.candidates.lost(unit))
        for info, assignment in relocate(state):
            state.changes.start(info, assignment)
            self.preempts.move(info)

    def _turn(self, cursor: Cursor) -> bool:
        """Start or grow the job, plainly or by an attempt. Return whether it did."""
        info, workers = cursor.info, cursor.workers
        more = 1 if workers else info.least
        if workers and info.age in self.bounded and grows_over_quota(self.state, info):
            return False
        if (assignment := self._plain(info, more)) is not None:
            self.state.changes.start(info, assignment)
            self.candidates.add_fresh(info, assignment.workers, is_gang=not workers)
            self.backfill.started(info, assignment.workers)
        elif (assignment := self._consolidate(info, more)) is not None or (
            assignment := self._attempt_to_preempt(info, more, grows=workers > 0)
        ) is not None:
            self.state.changes.start(info, assignment)
            self.backfill.started(info, assignment.workers)
        else:
            return False
        if cursor.next():
            self.queue.put_back(cursor)
        else:
            self.queue.changed(info.branch.path)
        self._wants_more(info, workers + more)
        if self.queue.failed:
            self._others_may_claim(info, more)
        return True

    def _others_may_claim(self, info: JobInfo, workers: int) -> None:
        """Retry failed jobs that may claim what has just started (R15): now, or at the end."""
        path = info.branch.path
        if self.usage.newly_above(path, info.request.times(workers)):
            self._look_again()
            self.more_to_claim = False
        elif self.usage.is_above(path):
            self.more_to_claim = True

    def _wants_more(self, info: JobInfo, workers: int) -> None:
        if workers < info.spec.workers:
            self.queue.put(EquivalenceClass.alone(info, workers))

    def _plain(self, info: JobInfo, workers: int) -> Assignment | None:
        """Assign GPUs that are free now, or return None (R8-R10)."""
        if self.state.ledger.bound(info, info.request.times(workers), releasing=False) is not None:
            return None
        return self._take(info, workers, releasing=False)

    def _take(self, info: JobInfo, workers: int, *, releasing: bool) -> Assignment | None:
        capacity = self.state.capacity
        places = find(info, workers, capacity, releasing=releasing)
        if places is None:
            return None
        assignment = capacity.take(info, places)
        return self._behind_limit(info, assignment) if releasing else assignment

    def _behind_limit(self, info: JobInfo, assignment: Assignment) -> Assignment:
        """Add the departures that bring the job within its limits and quotas."""
        state = self.state
        amounts = info.request.times(len(assignment.workers))
        over = state.ledger.bound(info, amounts, releasing=False)
        if over is None:
            return assignment
        return assignment.behind(state.releasing_below(over[0]))

    def _consolidate(self, info: JobInfo, workers: int) -> Assignment | None:
        """Assign GPUs that other jobs free by moving elsewhere, or return None (R18)."""
        if (info.requirements, workers) in self.immovable:
            return None
        consolidated = consolidate(self.state, self.candidates, info, workers)
        if consolidated is None:
            self.immovable.add((info.requirements, workers))
            return None
        for moved in consolidated.moved:
            mover = moved.unit.info
            self.state.changes.give(moved.unit)
            self._preempt(moved.unit, info.job.id, "R18")
            self.state.changes.start(mover, Assignment(moved.to, tuple(moved.unit.departures)))
            self.queue.changed(mover.branch.path)
        return consolidated.assignment.behind(
            one for moved in consolidated.moved for one in moved.unit.departures
        )

    def _attempt_to_preempt(self, info: JobInfo, workers: int, *, grows: bool) -> Assignment | None:
        """Assign GPUs of other jobs or releasing GPUs, if the job may claim them (R15-R18)."""
        attempt = PreemptionAttempt(self.state, self.candidates, info, workers)
        if not attempt.search():
            if attempt.delayed_until_s is not None:
                self.delayed_s.append(attempt.delayed_until_s)
            return None
        if info.age in self.renounced and attempt.victims:
            attempt.undo()
            return None
        assignment = self._take(info, workers, releasing=True)
        if assignment is None:
            raise AssertionError("a claim that fits has places")
        victims = [victim.unit for victim in attempt.victims]
        if grows and not self.preempts.leaving_for(info, victims).issuperset(assignment.after):
            attempt.undo()  # keep releasing GPUs for the jobs in turn
            return None
        fresh = [unit for unit in victims if unit.fresh]
        for unit in sorted(fresh, key=lambda unit: unit.is_gang):  # a gang after its surplus
            self._not_started_after_all(unit)
        after: list[Departure] = []
        for unit in victims:
            if not unit.fresh:
                self._give_way(unit, info.job.id)
                after += unit.departures
        if victims:
            self.queue.reconsider()
        if after and not attempt.entitled.in_quota():
            self.beyond_quota.append((info, len(self.preempts)))
        return assignment.behind(after)

    def _give_way(self, unit: PreemptionUnit, claimant: JobId) -> None:
        """Preempt a unit that ran before this pass. A stopped job does not grow either (R10)."""
        self.state.changes.give(unit)
        self.queue.changed(unit.info.branch.path)
        self._preempt(unit, claimant, "R15")
        if unit.is_gang:
            self.state.changes.forget_growth(unit.info)

    def _preempt(self, unit: PreemptionUnit, claimant: JobId | None, rule: str) -> None:
        self.leaves.add(unit.info.age)
        self.preempts.add(unit, claimant, rule, self.candidates.lost(unit))

    def _not_started_after_all(self, unit: PreemptionUnit) -> None:
        """Undo a start of this pass. The job, and jobs that may fit now, are tried again (R9)."""
        self.state.changes.give(unit)
        self.queue.changed(unit.info.branch.path)
        self.candidates.remove_fresh(unit)
        self.state.changes.withdraw(unit)
        self.queue.put(EquivalenceClass.alone(unit.info, self.state.changes.workers_of(unit.info)))
        self.immovable.clear()
        self._look_again()

    def _look_again(self) -> None:
        """Retry all jobs that failed or were held back."""
        for equal_jobs in self.backfill.forget():
            self.queue.put(equal_jobs)
        self.queue.retry()

    def plan(self, *, explain: bool) -> Plan:
        """Return the decisions, and the reasons of the waiting jobs."""
        state, preempts, due = self.state, self.preempts.values(), self.usage.guarantees
        commands: list[Command] = [*preempts]
        for job, entry in state.changes.assigned.items():
            commands += [Start(job, part.workers, part.jobs_after) for part in entry.starts()]
        over = state.over_quota
        return Plan(
            commands=tuple(commands),
            reasons=self._reasons() if explain else {},
            shares={
                name: Share(quota, guaranteed, share, -(-held.gpus // WHOLE_GPU))
                for (name, quota, guaranteed, share), held in zip(
                    self.usage.in_gpus, state.ledger.held, strict=True
                )
            },
            over_quota=over.after(state.jobs, state.changes.assigned, preempts, due)
            if explain
            else {},
            wake_s=self._wake_s(),
        )

    def _reasons(self) -> dict[JobId, WaitReason]:
        waiting = chain(self.queue.waiting(), self.backfill.waiting())
        reasons = reasons_of(self.state, self.candidates, waiting, self.renounced)
        reasons.update(held_back(self.backfill, reasons))
        reasons.update(self.state.blocked)
        return reasons

    def _wake_s(self) -> float | None:
        """Return when time alone may change the result: a protection, a reservation, a delay."""
        known = [self.state.next_change_s, self.backfill.until_s, *self.delayed_s]
        return min((at for at in known if at is not None), default=None)


def _hopeless(
    state: ClusterState,
    usage: QueueUsage,
    candidates: VictimCandidates,
    backfill: Backfill,
    cursor: Cursor,
) -> bool:
    """Return True if the job lacks GPUs and can claim none, without a trial (R9, R15)."""
    info = cursor.info
    asked = info.request.gpus if cursor.workers else info.min_gang.gpus
    free = state.capacity.free(info.requirements) + backfill.barred_gpus()
    if not asked or asked <= free * WHOLE_GPU or info.requirements.part:
        return False
    if backfill.needs_turn(info) or asked <= usage.most_to_claim(info.branch.index):
        return False
    by_youth = usage.above_quota(info.branch.index, info.min_gang)
    return not candidates.gives_below(info, by_youth=by_youth)
