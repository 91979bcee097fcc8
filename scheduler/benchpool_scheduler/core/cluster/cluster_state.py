"""Cluster state that the core keeps: holdings, waiting jobs and preemption units.

Between passes it holds only facts. ``put`` and ``drop`` update it, and cost in proportion to the
change. ``changes`` holds what a pass tries on it. Every change goes through the methods of these
two classes, so that ledger and capacity always agree.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from benchpool_scheduler.core.capacity.assignment import Departure, departures
from benchpool_scheduler.core.capacity.feasibility import possible
from benchpool_scheduler.core.capacity.free_capacity import FreeCapacity
from benchpool_scheduler.core.capacity.totals import (
    differs_in_room,
    total_capacity,
    with_idle_benches,
)
from benchpool_scheduler.core.cluster.over_quota import OverQuota
from benchpool_scheduler.core.cluster.pass_changes import PassChanges
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnits
from benchpool_scheduler.core.fairness.ledger import QuotaLedger
from benchpool_scheduler.core.fairness.queue_usage import QueueUsage
from benchpool_scheduler.core.fairness.shares import fair_shares
from benchpool_scheduler.core.jobs.amounts import NOTHING, Amounts
from benchpool_scheduler.core.jobs.endings import Endings
from benchpool_scheduler.core.jobs.equivalence import Signature, WaitingJobs
from benchpool_scheduler.core.jobs.job_info import JobInfo, job_info_of
from benchpool_scheduler.core.jobs.tree import Tree
from benchpool_scheduler.core.journal import Journal
from benchpool_scheduler.core.model import (
    Activity,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Policy,
    Project,
    Snapshot,
    UserUse,
    WaitReason,
)


class ClusterState:
    """State of the pool, kept between passes.

    Attributes:
        jobs: Every job, by ID.
        waiting: Jobs without workers and jobs that could grow, by project and signature.
        nominated: Jobs that hold a promise, by age (R20).
        moving: Jobs that are leaving their places for promised ones, by age (R18).
        units: Preemption units of the running jobs.
        endings: Known ends of the running jobs (R14).
        never: Cached reasons why jobs of a signature can never run.
        protected_at: Node where an explanation last found protected victims for a signature.
        changes: Changes and decisions of the present pass.
        versions: Version of each project, which rises with every change of its running jobs.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        projects: Sequence[Project],
        policy: Policy | None = None,
        users: Sequence[UserUse] = (),
        topology: Sequence[str] = (),
    ) -> None:
        """Create an empty pool.

        Raises:
            InvalidInput: The projects are not a tree, or a user's project does not exist.
        """
        self.journal = Journal()
        self.nodes = tuple(nodes)
        self.policy = policy or Policy()
        self.topology = tuple(topology)
        self.tree = Tree(projects)
        self.past = {(self.tree.of(u.project).index, u.name): u.used_gpu_s for u in users}
        self.jobs: dict[JobId, JobInfo] = {}
        self.ledger = QuotaLedger(self.tree)
        self.capacity = FreeCapacity(nodes, topology, self.journal)
        self.changes = PassChanges(self.capacity, self.ledger, self.journal)
        self.empty = FreeCapacity([with_idle_benches(node) for node in nodes], topology)
        self.keeping = [node for node in self.capacity.nodes if node.node.kept]
        self.units = PreemptionUnits(self.tree, self.policy)
        self.endings = Endings()
        self.waiting = WaitingJobs()
        self.blocked: dict[JobId, WaitReason] = {}
        self.nominated: dict[int, JobInfo] = {}
        self.moving: dict[int, JobInfo] = {}
        self.running: list[set[JobInfo]] = [set() for _ in self.tree.branches]
        self.versions = [0] * len(self.tree.branches)
        self.releasing: dict[JobId, JobInfo] = {}
        self._youngest = -1
        self.never: dict[tuple[object, ...], WaitReason] = {}
        self.protected_at: dict[Signature, NodeName] = {}
        self._possible: dict[tuple[object, ...], bool] = {}
        self.over_quota = OverQuota(self.ledger, self.running, self.versions)
        self._in_all = total_capacity(self.nodes)
        self._usage: QueueUsage | None = None
        self._ageing: list[tuple[float, int, JobInfo]] = []
        self._puts = 0

    @classmethod
    def of(cls, snapshot: Snapshot) -> ClusterState:
        """Create the cluster state of a snapshot.

        Raises:
            InvalidInput: The snapshot contradicts itself, e.g. a job names no project.
        """
        state = cls(
            snapshot.nodes, snapshot.projects, snapshot.policy, snapshot.users, snapshot.topology
        )
        for job in snapshot.jobs:
            state.put(job)
        return state

    # ------------------------------------------------------------------ facts

    def put(self, job: JobFacts, age: int | None = None) -> None:
        """Add or update a job. An updated job keeps its age.

        Args:
            age: Rank among all jobs, the oldest the smallest. By default the job is the youngest.

        Raises:
            InvalidInput: The job names no project that may hold jobs, or has impossible numbers.
            The
                state is then unchanged.
        """
        before = self.jobs.get(job.id)
        if before is not None:
            age = before.age
        elif age is None:
            age = self._youngest + 1
        info = job_info_of(job, age, self.tree, self.policy.long_run_s)
        if before is not None:
            self._forget(before)
        self._youngest = max(self._youngest, age)
        self.jobs[job.id] = info
        self._usage = None
        self._enter(info)
        if not info.queued and job.checkpoints and not info.long:
            self._will_age(info)

    def _will_age(self, info: JobInfo) -> None:
        """Schedule the time at which a running or leaving job becomes long-running."""
        job, long_run_s = info.job, self.policy.long_run_s
        if long_run_s > 0:
            self._puts += 1
            at_s = job.as_of_s - job.attained_at(job.as_of_s) + long_run_s
            heapq.heappush(self._ageing, (at_s, self._puts, info))

    def pass_time(self, now_s: float) -> None:
        """Apply the effects of time: end protections, and mark jobs as long-running."""
        while self._ageing and self._ageing[0][0] <= now_s:
            info = heapq.heappop(self._ageing)[2]
            if self.jobs.get(info.job.id) is info:
                self._forget(info)
                older = JobInfo(info.job, info.age, info.branch, long=True)
                self.jobs[info.job.id] = older
                self._enter(older)
                self._usage = None
        # Last, because a job that was put again above is protected until this check.
        self.units.release(now_s)

    @property
    def next_change_s(self) -> float | None:
        """Return the time of the next change caused by time alone, or None."""
        while self._ageing and self.jobs.get(self._ageing[0][2].job.id) is not self._ageing[0][2]:
            heapq.heappop(self._ageing)
        changes = [self._ageing[0][0]] if self._ageing else []
        if (release_s := self.units.next_release_s) is not None:
            changes.append(release_s)
        return min(changes, default=None)

    def drop(self, job: JobId) -> None:
        """Remove a job that has ended or does not request workers now. Unknown jobs are ignored."""
        if (info := self.jobs.pop(job, None)) is not None:
            self._forget(info)
            self._usage = None

    def renew(self, nodes: Iterable[Node]) -> bool:
        """Replace nodes whose GPUs, CPUs, memory or GPUs kept for benches changed (R3).

        Returns False and changes nothing if a node is unknown or differs in another field. The cost
        is one check of every job and node. A new state costs far more.
        """
        known = {node.name: node for node in self.nodes}
        renewed = {node.name: node for node in nodes}
        if not all(differs_in_room(known.get(name), node) for name, node in renewed.items()):
            return False
        here = [w for w in self.jobs.values() if any(x.node in renewed for x in w.job.held)]
        for info in here:
            self._forget(info)
        for node in renewed.values():
            self.capacity.renew(node)
            self.empty.renew(with_idle_benches(node))
        self.nodes = tuple(renewed.get(node.name, node) for node in self.nodes)
        self._look_around()
        for info in here:
            self._enter(info)
        return True

    def rehouse(self, nodes: Sequence[Node]) -> None:
        """Replace all nodes, e.g. after nodes joined, left, became ready or changed labels.

        The cost is one check of every running job, every node and every signature of waiting jobs.
        """
        held = [info for info in self.jobs.values() if info.job.held]
        for info in held:
            self._forget(info)
        self.nodes = tuple(nodes)
        self.capacity = FreeCapacity(self.nodes, self.topology, self.journal)
        self.changes = PassChanges(self.capacity, self.ledger, self.journal)
        self.empty = FreeCapacity([with_idle_benches(node) for node in nodes], self.topology)
        self.protected_at.clear()
        self._look_around()
        for info in held:
            self._enter(info)

    def _look_around(self) -> None:
        """Drop all conclusions drawn from the nodes. Changed nodes must have no seated workers."""
        self.keeping = [node for node in self.capacity.nodes if node.node.kept]
        self._in_all = total_capacity(self.nodes)
        self._usage = None
        self.never.clear()
        vars(self).pop("whole", None)
        self._update_demand()

    def _update_demand(self) -> None:
        """Update the demand of jobs that became able or unable to run in the pool."""
        before, self._possible = self._possible, {}
        for info in self.jobs.values():
            waits = info.queued and info.job.blocked is None
            if waits and before[info.signature] != self.possible(info):
                sign = 1 if self.possible(info) else -1
                self.ledger.ask(info, info.request.times(sign * info.spec.workers))

    def _enter(self, info: JobInfo) -> None:
        job = info.job
        self.endings.put(info)
        if info.queued and job.blocked is not None:
            self.blocked[job.id] = job.blocked
            return
        if info.queued:
            if self.possible(info):
                self.ledger.ask(info, info.request.times(job.spec.workers))
            if job.is_nominated:
                self.nominated[info.age] = info
            else:
                self.waiting.put(info)
            return
        self.ledger.ask(info, info.request.times(job.spec.workers))
        self.capacity.seat(info, job.held, leaving=job.activity is Activity.TERMINATING)
        amounts = info.request.times(len(job.held))
        self.versions[info.branch.index] += 1
        self.running[info.branch.index].add(info)
        if job.activity is Activity.TERMINATING:
            self._enter_releasing(info, amounts)
            return
        self.ledger.add(info, amounts)
        if job.spec.preemptible:
            self.units.put(info)
        if len(job.held) < job.spec.workers:
            self.waiting.put(info, len(job.held))
            if job.is_nominated:
                self.nominated[info.age] = info

    def _enter_releasing(self, info: JobInfo, amounts: Amounts) -> None:
        self.ledger.leave(info, amounts)
        self.releasing[info.job.id] = info
        if len(info.job.nominated) >= info.least:  # fewer were promised for growth
            self.moving[info.age] = info

    def _forget(self, info: JobInfo) -> None:
        job = info.job
        self.endings.drop(info)
        if info.queued and job.blocked is not None:
            del self.blocked[job.id]
            return
        if info.queued:
            if self.possible(info):
                self.ledger.ask(info, NOTHING - info.request.times(job.spec.workers))
            if job.is_nominated:
                del self.nominated[info.age]
            else:
                self.waiting.drop(info)
            return
        self.ledger.ask(info, NOTHING - info.request.times(job.spec.workers))
        amounts = info.request.times(len(job.held))
        self.versions[info.branch.index] += 1
        self.running[info.branch.index].discard(info)
        if job.activity is Activity.TERMINATING:
            self.ledger.leave(info, NOTHING - amounts)
            del self.releasing[job.id]
            self.moving.pop(info.age, None)
        else:
            self.ledger.add(info, NOTHING - amounts)
            if job.spec.preemptible:
                self.units.drop(info)
            if len(job.held) < job.spec.workers:
                self.waiting.drop(info, len(job.held))
                self.nominated.pop(info.age, None)
        self.capacity.unseat(info, job.held, leaving=job.activity is Activity.TERMINATING)

    def possible(self, info: JobInfo) -> bool:
        """Return whether the job could run in an empty pool. If not, it adds no demand."""
        known = self._possible.get(info.signature)
        if known is None:
            known = possible(info, self.empty, self.tree)
            self._possible[info.signature] = known
        return known

    @property
    def usage(self) -> QueueUsage:
        """Return the use of every project, with shares computed from the facts."""
        if self._usage is None:
            total = self.total
            demands, young = self.ledger.demands, self.ledger.young
            deserved = fair_shares(
                self.tree,
                total,
                demands,
                self.policy.usage_weight,
                None if young == demands else young,
            )
            self._usage = QueueUsage(self.tree, deserved, total, self.ledger)
        return self._usage

    @property
    def total(self) -> Amounts:
        """Return what train may use in total. An unbounded resource counts the demand."""
        fixed, unbounded = self._in_all
        if not unbounded[0] and not unbounded[1]:
            return fixed
        asked = [sum(demand[r] for demand in self.ledger.demands) for r in (1, 2)]
        return fixed + Amounts(0, unbounded[0] * asked[0], unbounded[1] * asked[1])

    @cached_property
    def whole(self) -> FreeCapacity:
        """Return the free capacity of an empty pool with all nodes ready."""
        nodes = [replace(with_idle_benches(node), ready=True) for node in self.nodes]
        return FreeCapacity(nodes, self.topology)

    def releasing_below(self, index: int) -> Iterator[Departure]:
        """Yield the departures from a project and its descendants, by age of the jobs.

        Departures of this pass are included.
        """
        given = [(unit.info, unit.workers) for unit in self.changes.given if not unit.fresh]
        before = [(info, info.job.held) for info in self.releasing.values()]
        for info, workers in sorted([*given, *before], key=lambda leaving: leaving[0].age):
            if index in info.branch.path:
                yield from departures(info, workers)
