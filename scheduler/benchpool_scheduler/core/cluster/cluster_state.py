"""The pool as the core keeps it: who holds what, who waits, what could be given.

Between passes a board holds facts only; ``put`` and ``drop`` tell it what has happened, and cost
what they change. A pass tries things out on it through ``start``, ``let_go`` and the like, and
``restore`` takes all of that back. Every change goes through the methods here, so that ledger and
room always agree.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from benchpool_scheduler.core.capacity.assignment import Decided
from benchpool_scheduler.core.capacity.feasibility import possible
from benchpool_scheduler.core.capacity.free_capacity import Room, Taken
from benchpool_scheduler.core.capacity.totals import capacity, differs_in_room, with_idle_benches
from benchpool_scheduler.core.cluster.over_quota import OverQuota
from benchpool_scheduler.core.cluster.preemption_units import Chunk, Chunks
from benchpool_scheduler.core.fairness.ledger import Ledger
from benchpool_scheduler.core.fairness.queue_usage import Standing
from benchpool_scheduler.core.fairness.shares import fair_shares
from benchpool_scheduler.core.jobs.amounts import NOTHING, Amounts
from benchpool_scheduler.core.jobs.endings import Endings
from benchpool_scheduler.core.jobs.equivalence import Shape, Waiting
from benchpool_scheduler.core.jobs.job_info import Work, work_of
from benchpool_scheduler.core.jobs.tree import Tree
from benchpool_scheduler.core.model import (
    Activity,
    Job,
    JobId,
    Node,
    NodeName,
    Policy,
    Project,
    Reason,
    Snapshot,
    UserUse,
)


class Board:
    """The pool, kept from pass to pass.

    Attributes:
        works: Every job by its id.
        waiting: The jobs without workers and those that could grow, by project and shape.
        promised: Jobs that hold a promise, by age (R20).
        moving: Jobs that are leaving their places for promised ones, by age (R18).
        chunks: What the running jobs could give.
        endings: When they end, as far as that is known (R14).
        never: Why jobs of a shape can never run, as far as it was asked for.
        protected_at: Where an explanation last found that a shape waits for protected victims.
        decided: What the present pass has decided so far, by job; ``given``: who gives way in it.
        versions: By project, a number that rises with every change of its running jobs.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        projects: Sequence[Project],
        policy: Policy | None = None,
        users: Sequence[UserUse] = (),
        topology: Sequence[str] = (),
    ) -> None:
        """Make an empty pool.

        Raises:
            InvalidInput: The projects are no tree, or a user's project does not exist.
        """
        self.nodes = tuple(nodes)
        self.policy = policy or Policy()
        self.topology = tuple(topology)
        self.tree = Tree(projects)
        self.past = {(self.tree.of(u.project).index, u.name): u.used_gpu_s for u in users}
        self.works: dict[JobId, Work] = {}
        self.ledger = Ledger(self.tree)
        self.room = Room(nodes, topology)
        self.empty = Room([with_idle_benches(node) for node in nodes], topology)
        self.keeping = [node for node in self.room.nodes if node.node.kept]
        self.chunks = Chunks(self.tree, self.policy)
        self.endings = Endings()
        self.waiting = Waiting()
        self.promised: dict[int, Work] = {}
        self.moving: dict[int, Work] = {}
        self.running: list[set[Work]] = [set() for _ in self.tree.branches]
        self.versions = [0] * len(self.tree.branches)
        self.decided: dict[JobId, Decided] = {}
        self.leaving: dict[JobId, Work] = {}
        self._youngest = -1
        self.never: dict[tuple[object, ...], Reason] = {}
        self.protected_at: dict[Shape, NodeName] = {}
        self._possible: dict[tuple[object, ...], bool] = {}
        self.given: list[Chunk] = []
        self.over_quota = OverQuota(self.ledger, self.running, self.versions)
        self._capacity = capacity(self.nodes)
        self._standing: Standing | None = None
        self._ageing: list[tuple[float, int, Work]] = []
        self._puts = 0

    @classmethod
    def of(cls, snapshot: Snapshot) -> Board:
        """Make the board of a snapshot.

        Raises:
            InvalidInput: The snapshot contradicts itself, e.g. a job names no project.
        """
        board = cls(
            snapshot.nodes, snapshot.projects, snapshot.policy, snapshot.users, snapshot.topology
        )
        for job in snapshot.jobs:
            board.put(job)
        return board

    # ------------------------------------------------------------------ facts

    def put(self, job: Job, age: int | None = None) -> None:
        """The job is new, or something about it has changed; then it keeps its age.

        Args:
            age: Its place among all jobs, the oldest the smallest; by default it is the youngest.

        Raises:
            InvalidInput: It names no project that may hold jobs, or has impossible numbers; then
                nothing has changed.
        """
        before = self.works.get(job.id)
        if before is not None:
            age = before.age
        elif age is None:
            age = self._youngest + 1
        work = work_of(job, age, self.tree, self.policy.long_run_s)
        if before is not None:
            self._forget(before)
        self._youngest = max(self._youngest, age)
        self.works[job.id] = work
        self._standing = None
        self._enter(work)
        if job.activity is Activity.RUNNING and job.checkpoints and not work.long:
            self._will_age(work)

    def _will_age(self, work: Work) -> None:
        """Remember when a running job will have run long."""
        job, long_run_s = work.job, self.policy.long_run_s
        if long_run_s > 0:
            self._puts += 1
            at_s = job.as_of_s - job.attained_at(job.as_of_s) + long_run_s
            heapq.heappush(self._ageing, (at_s, self._puts, work))

    def pass_time(self, now_s: float) -> None:
        """Let come true what time alone brings: protections end, jobs become long-running."""
        while self._ageing and self._ageing[0][0] <= now_s:
            work = heapq.heappop(self._ageing)[2]
            if self.works.get(work.job.id) is work:
                self._forget(work)
                older = Work(work.job, work.age, work.branch, long=True)
                self.works[work.job.id] = older
                self._enter(older)
                self._standing = None
        # After the others: one that is put anew is protected until it is looked at here.
        self.chunks.release(now_s)

    @property
    def next_change_s(self) -> float | None:
        """Return when time alone changes something next; None for never."""
        while self._ageing and self.works.get(self._ageing[0][2].job.id) is not self._ageing[0][2]:
            heapq.heappop(self._ageing)
        changes = [self._ageing[0][0]] if self._ageing else []
        if (release_s := self.chunks.next_release_s) is not None:
            changes.append(release_s)
        return min(changes, default=None)

    def drop(self, job: JobId) -> None:
        """The job has ended, or does not want to run now. One that is not here is no error."""
        if (work := self.works.pop(job, None)) is not None:
            self._forget(work)
            self._standing = None

    def renew(self, nodes: Iterable[Node]) -> bool:
        """Let some nodes have other GPUs, CPUs or memory, or keep others for benches (R3).

        Costs a look at every job and node; a new board costs far more. False, and nothing has
        changed, where one of them is no node of the board or is another in more than that.
        """
        known = {node.name: node for node in self.nodes}
        renewed = {node.name: node for node in nodes}
        if not all(differs_in_room(known.get(name), node) for name, node in renewed.items()):
            return False
        here = [w for w in self.works.values() if any(x.node in renewed for x in w.job.held)]
        for work in here:
            self._forget(work)
        for node in renewed.values():
            self.room.renew(node)
            self.empty.renew(with_idle_benches(node))
        self.nodes = tuple(renewed.get(node.name, node) for node in self.nodes)
        self._look_around()
        for work in here:
            self._enter(work)
        return True

    def rehouse(self, nodes: Sequence[Node]) -> None:
        """Let the nodes be others: some come, go, are ready again or have other labels.

        Costs a look at every running job and node, and at every shape of waiting ones.
        """
        held = [work for work in self.works.values() if work.job.held]
        for work in held:
            self._forget(work)
        self.nodes = tuple(nodes)
        self.room = Room(self.nodes, self.topology)
        self.empty = Room([with_idle_benches(node) for node in nodes], self.topology)
        self.protected_at.clear()
        self._look_around()
        for work in held:
            self._enter(work)

    def _look_around(self) -> None:
        """Take back what was concluded from the nodes; nobody is seated on those that changed."""
        self.keeping = [node for node in self.room.nodes if node.node.kept]
        self._capacity = capacity(self.nodes)
        self._standing = None
        self.never.clear()
        vars(self).pop("whole", None)
        self._ask_anew()

    def _ask_anew(self) -> None:
        """Book again what those ask for that can run now and could not before, or the reverse."""
        before, self._possible = self._possible, {}
        for work in self.works.values():
            if work.queued and before[work.shape] != self.possible(work):
                sign = 1 if self.possible(work) else -1
                self.ledger.ask(work, work.need.times(sign * work.job.workers))

    def _enter(self, work: Work) -> None:
        job = work.job
        self.endings.put(work)
        if work.queued:
            if self.possible(work):
                self.ledger.ask(work, work.need.times(job.workers))
            if job.earmarked:
                self.promised[work.age] = work
            else:
                self.waiting.put(work)
            return
        self.ledger.ask(work, work.need.times(job.workers))
        for worker in job.held:
            self.room.seat(work, worker)
        amounts = work.need.times(len(job.held))
        self.versions[work.branch.index] += 1
        self.running[work.branch.index].add(work)
        if job.activity is Activity.TERMINATING:
            self._enter_leaving(work, amounts)
            return
        self.ledger.add(work, amounts)
        if job.preemptible:
            self.chunks.put(work)
        if len(job.held) < job.workers:
            self.waiting.put(work, len(job.held))

    def _enter_leaving(self, work: Work, amounts: Amounts) -> None:
        self.ledger.leave(work, amounts)
        self.leaving[work.job.id] = work
        for worker in work.job.held:
            self.room.let_go(work, worker)
        if work.job.promised:
            self.moving[work.age] = work

    def _forget(self, work: Work) -> None:
        job = work.job
        self.endings.drop(work)
        if work.queued:
            if self.possible(work):
                self.ledger.ask(work, NOTHING - work.need.times(job.workers))
            if job.earmarked:
                del self.promised[work.age]
            else:
                self.waiting.drop(work)
            return
        self.ledger.ask(work, NOTHING - work.need.times(job.workers))
        amounts = work.need.times(len(job.held))
        self.versions[work.branch.index] += 1
        self.running[work.branch.index].discard(work)
        if job.activity is Activity.TERMINATING:
            self.ledger.leave(work, NOTHING - amounts)
            del self.leaving[job.id]
            for worker in job.held:
                self.room.hold_again(work, worker)
            self.moving.pop(work.age, None)
        else:
            self.ledger.remove(work, amounts)
            if job.preemptible:
                self.chunks.drop(work)
            if len(job.held) < job.workers:
                self.waiting.drop(work, len(job.held))
        for worker in job.held:
            self.room.unseat(work, worker)

    def possible(self, work: Work) -> bool:
        """Tell whether the job could run in an empty pool; one that never can asks for nothing."""
        known = self._possible.get(work.shape)
        if known is None:
            known = possible(work, self.empty, self.tree)
            self._possible[work.shape] = known
        return known

    @property
    def standing(self) -> Standing:
        """Return how every project stands; its shares are those of the facts."""
        if self._standing is None:
            total = self.total
            demands, young = self.ledger.demands, self.ledger.young
            shares = fair_shares(
                self.tree,
                total,
                demands,
                self.policy.usage_weight,
                None if young == demands else young,
            )
            self._standing = Standing(self.tree, shares, total, self.ledger)
        return self._standing

    @property
    def total(self) -> Amounts:
        """Return what train may use in all; where a node has no bound, all that is asked for."""
        fixed, unbounded = self._capacity
        if not unbounded[0] and not unbounded[1]:
            return fixed
        asked = [sum(demand[r] for demand in self.ledger.demands) for r in (1, 2)]
        return fixed + Amounts(0, unbounded[0] * asked[0], unbounded[1] * asked[1])

    @cached_property
    def whole(self) -> Room:
        """Return the room that an empty pool would have, all of its nodes ready."""
        nodes = [replace(with_idle_benches(node), ready=True) for node in self.nodes]
        return Room(nodes, self.topology)

    # ------------------------------------------------------------------ trying out

    def start(self, work: Work, taken: Taken) -> None:
        """Book workers that the job gets."""
        self.decided.setdefault(work.job.id, Decided(work)).parts.append(taken)
        self.room.homes.setdefault(work.job.id, taken.workers[0].node)
        self.ledger.add(work, work.need.times(len(taken.workers)))

    def let_go(self, chunk: Chunk) -> None:
        """Take a chunk from its job: its GPUs are soon free, or free when it was fresh."""
        if chunk.fresh:
            self.ledger.remove(chunk.work, chunk.amounts)
            for worker in chunk.workers:
                self.room.give_back(chunk.work, worker)
            return
        self.ledger.let_go(chunk.work, chunk.amounts)
        for worker in chunk.workers:
            self.room.let_go(chunk.work, worker)

    def hold_again(self, chunk: Chunk) -> None:
        """Take back ``let_go``."""
        if chunk.fresh:
            self.ledger.add(chunk.work, chunk.amounts)
            for worker in chunk.workers:
                self.room.retake(chunk.work, worker)
            return
        self.ledger.hold_again(chunk.work, chunk.amounts)
        for worker in chunk.workers:
            self.room.hold_again(chunk.work, worker)

    def give(self, chunk: Chunk) -> None:
        """The chunk that was let go is gone for this pass."""
        chunk.gone, chunk.paying = True, False
        self.given.append(chunk)

    def undo_start(self, chunk: Chunk) -> None:
        """Forget a start of this pass whose chunk was let go."""
        entry = self.decided[chunk.work.job.id]
        entry.parts = [part for part in entry.parts if part.workers != chunk.workers]
        if not entry.parts:
            del self.decided[chunk.work.job.id]
            del self.room.homes[chunk.work.job.id]

    def take_back(self, chunk: Chunk) -> None:
        """A chunk that was given holds again after all."""
        chunk.gone = False
        self.given.remove(chunk)
        self.hold_again(chunk)

    def restore(self) -> None:
        """Take back everything that a pass has tried out."""
        for entry in self.decided.values():
            for part in entry.parts:
                self.ledger.remove(entry.work, entry.work.need.times(len(part.workers)))
                for worker in part.workers:
                    self.room.give_back(entry.work, worker)
        for chunk in self.given:
            chunk.gone = False
            if not chunk.fresh:
                self.hold_again(chunk)
        self.decided, self.given = {}, []
        self.room.homes.clear()

    def leaving_below(self, index: int) -> list[JobId]:
        """Return the jobs that are leaving from a project or below it, or will by this pass."""
        works = {chunk.work for chunk in self.given if not chunk.fresh}
        below = [work for work in works.union(self.leaving.values()) if index in work.branch.path]
        return [work.job.id for work in sorted(below, key=lambda work: work.age)]
