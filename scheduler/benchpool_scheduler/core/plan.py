"""One pass: a snapshot goes in, a plan comes out.

    snapshot ── shares ── benches first ── promises ── turns ── reasons ── plan
                (R4-R7)   (R3)             (R20)      (R8-R18)  (R22)

The jobs take turns (R11). The one whose turn it is starts on what is free, if it fits and no
limit forbids it (R8-R10); else others make room by moving, where that helps (R18); else it claims
room from others, if it may (R15-R18); else it waits and blocks nobody (R9).

Two views of the pool are kept apart all the way: a plain start sees the pool as it is, a claim
sees it as it will be when those who are leaving have gone. A job that was promised room keeps it
and makes nobody else leave (R20).

Nothing is searched: every line of equal jobs has its turn until one of it fails, and a turn is
bounded by what running jobs could give.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain

from benchpool_scheduler.core.backfill.backfill import Backfill
from benchpool_scheduler.core.capacity.free_capacity import Taken
from benchpool_scheduler.core.capacity.placement import find
from benchpool_scheduler.core.cluster.cluster_state import Board
from benchpool_scheduler.core.cluster.preemption_units import Chunk
from benchpool_scheduler.core.explain.held_back import held_back
from benchpool_scheduler.core.explain.reasons import reasons_of
from benchpool_scheduler.core.fairness.queue_usage import Standing
from benchpool_scheduler.core.fairness.scheduling_queue import Turns, Waiter
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.equivalence import Line
from benchpool_scheduler.core.jobs.job_info import Fit, Work
from benchpool_scheduler.core.model import (
    Command,
    JobId,
    Plan,
    Preempt,
    ProjectName,
    Reason,
    Share,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.core.preemption.benches import give_way_to_benches
from benchpool_scheduler.core.preemption.candidates import Givers
from benchpool_scheduler.core.preemption.consolidation import make_room
from benchpool_scheduler.core.preemption.reprieve import go_on_elsewhere, spare
from benchpool_scheduler.core.preemption.victims import Claim


def decide(snapshot: Snapshot) -> Plan:
    """Decide what to do now.

    Raises:
        InvalidInput: The snapshot contradicts itself, e.g. a job names no project.

    >>> from benchpool_scheduler.core.model import GpuId, Job, Node, NodeName, Project
    >>> a, b = GpuId("a"), GpuId("b")
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("box"), (a, b)),),
    ...     projects=(Project(ProjectName("susan"), quota=1),),
    ...     jobs=(
    ...         Job(JobId("one"), ProjectName("susan"), gpus=2),
    ...         Job(JobId("two"), ProjectName("susan")),
    ...     ),
    ... )
    >>> plan = decide(pool)
    >>> [command.workers for command in plan.commands]
    [(Worker(node='box', gpus=('a', 'b'), part=None),)]
    >>> plan.reasons["two"].code.value
    'fair-share-reached'
    """
    return _decide(Board.of(snapshot), snapshot.now_s, explain=True)


def decide_on(board: Board, now_s: float, *, explain: bool = True) -> Plan:
    """Decide what to do with a board that is kept; it is left as it was.

    Args:
        now_s: The instant, on the clock of the jobs' ``as_of_s``, in seconds.
        explain: Say why others wait (R22) and who runs over quota; without it a pass is shorter.
    """
    try:
        return _decide(board, now_s, explain=explain)
    finally:
        board.restore()


def _decide(board: Board, now_s: float, *, explain: bool) -> Plan:
    run = Pass(board, now_s)
    run.benches()
    run.promises()
    run.turns()
    return run.plan(explain=explain)


class Pass:
    """The steps of one pass over a board."""

    def __init__(self, board: Board, now_s: float) -> None:
        board.pass_time(now_s)
        self.board = board
        self.standing = board.standing
        self.now_s = now_s
        self.givers = Givers(board.chunks, now_s)
        self.preempts: dict[tuple[JobId, JobId | None], Preempt] = {}
        self.leaves: set[int] = set()
        self.immovable: set[tuple[Fit, int]] = set()
        self.delayed_s: list[float] = []
        self.backfill = Backfill(board, now_s)
        # What a pass made is gone with it: no part of it knows the pass.
        hopeless = partial(_hopeless, board, self.standing, self.givers, self.backfill)
        self.queue = Turns(self.standing, board.past, hopeless)

    def benches(self) -> None:
        """Where benches lack room, preemptible over-quota work gives way (R3)."""
        for chunk in give_way_to_benches(self.board, self.givers):
            self._preempt(chunk, None, "R3")

    def promises(self) -> None:
        """Jobs that were promised room come first and take it, in the order of R11 (R20)."""
        board = self.board
        for _, work in sorted(board.moving.items()):
            self._keep_move(work)
        if not board.promised:
            return
        promised = Turns(self.standing, board.past, lambda waiter: False)
        for _, work in sorted(board.promised.items()):
            promised.put(_alone(work))
        while (waiter := promised.take()) is not None:
            work = waiter.work
            taken = self._keep_promise(work)
            if taken is None:
                self.queue.put(_alone(work))
            else:
                board.start(work, taken)
                promised.changed(work.branch.path)
                self._wants_more(work, len(taken.workers))

    def _keep_move(self, work: Work) -> None:
        """Keep the new places of a job that is leaving its old ones."""
        if (taken := self.board.room.take_promised(work, work.job.promised)) is not None:
            after = dict.fromkeys([*taken.after, work.job.id])
            self.board.start(work, Taken(taken.workers, tuple(after)))

    def _keep_promise(self, work: Work) -> Taken | None:
        board, job = self.board, work.job
        if board.ledger.bound(work, work.core, soon=True) is not None:
            return None
        amounts = work.need.times(len(job.promised))
        whole = job.min_workers <= len(job.promised) <= job.workers
        if whole and board.ledger.bound(work, amounts, soon=True) is None:
            taken = board.room.take_promised(work, job.promised)
            if taken is not None:
                return self._behind_limit(work, taken)
        return self._take(work, job.min_workers, soon=True)

    def turns(self) -> None:
        """Every waiting job has its turn; then those that could grow."""
        for line in self.board.waiting:
            self.queue.put(line)
        while (waiter := self.queue.take()) is not None:
            if waiter.workers and waiter.work.age in self.leaves:
                continue
            if not self.backfill.face(waiter) or not self._turn(waiter):
                self._in_vain(waiter)
        self.backfill.close()
        self._spare()

    def _in_vain(self, waiter: Waiter) -> None:
        """The job did not start: room is kept for it (R14), or it is held back by such room."""
        self.backfill.blocked(waiter, self.leaves)
        shorter = self.backfill.skip(waiter)
        if shorter is None:
            self.queue.fail(waiter)
        elif shorter:
            self.queue.put_back(waiter)

    def _spare(self) -> None:
        """Whoever need not give way after all stays, or goes on elsewhere (R18)."""
        board = self.board
        for chunk in spare(board):
            for key in [key for key in self.preempts if key[0] == chunk.work.job.id]:
                self._forget(key, chunk)
        for work, taken in go_on_elsewhere(board):
            board.start(work, taken)
            for key in [key for key in self.preempts if key[0] == work.job.id]:
                self.preempts[key] = replace(self.preempts[key], rule="R18")

    def _forget(self, key: tuple[JobId, JobId | None], chunk: Chunk) -> None:
        before = self.preempts[key]
        workers = tuple(worker for worker in before.workers if worker not in chunk.workers)
        if not workers:
            del self.preempts[key]
        else:
            lost = before.lost_gpu_s - self.givers.lost(chunk)
            self.preempts[key] = replace(before, workers=workers, lost_gpu_s=lost)

    def _turn(self, waiter: Waiter) -> bool:
        """Start or grow the job, plainly or by a claim; tell whether it did."""
        work, workers = waiter.work, waiter.workers
        more = 1 if workers else work.job.min_workers
        if (taken := self._plain(work, more)) is not None:
            self.board.start(work, taken)
            self.givers.add_fresh(work, taken.workers, core=not workers)
            self.backfill.started(work, taken.workers)
        elif (taken := self._move(work, more)) is not None or (
            taken := self._claim(work, more, grows=workers > 0)
        ) is not None:
            self.board.start(work, taken)
            self.backfill.started(work, taken.workers)
        else:
            return False
        if waiter.next():
            self.queue.put_back(waiter)
        else:
            self.queue.changed(work.branch.path)
        self._wants_more(work, workers + more)
        return True

    def _wants_more(self, work: Work, workers: int) -> None:
        if workers < work.job.workers:
            self.queue.put(_alone(work, workers))

    def _plain(self, work: Work, workers: int) -> Taken | None:
        """Take what is free now (R8-R10)."""
        if self.board.ledger.bound(work, work.need.times(workers), soon=False) is not None:
            return None
        return self._take(work, workers, soon=False)

    def _take(self, work: Work, workers: int, *, soon: bool) -> Taken | None:
        room = self.board.room
        places = find(work, workers, room, soon=soon)
        if places is None:
            return None
        taken = room.take(work, places)
        return self._behind_limit(work, taken) if soon else taken

    def _behind_limit(self, work: Work, taken: Taken) -> Taken:
        """Add who must leave before the job is within its limits and quotas."""
        board = self.board
        amounts = work.need.times(len(taken.workers))
        over = board.ledger.bound(work, amounts, soon=False)
        if over is None:
            return taken
        after = dict.fromkeys([*taken.after, *board.leaving_below(over[0])])
        return Taken(taken.workers, tuple(after))

    def _move(self, work: Work, workers: int) -> Taken | None:
        """Take room that others make by going on elsewhere (R18)."""
        if (work.fit, workers) in self.immovable:
            return None
        cleared = make_room(self.board, self.givers, work, workers)
        if cleared is None:
            self.immovable.add((work.fit, workers))
            return None
        after = dict.fromkeys(cleared.taken.after)
        for moved in cleared.moved:
            mover = moved.chunk.work
            self.board.give(moved.chunk)
            self._preempt(moved.chunk, work.job.id, "R18")
            self.board.start(mover, Taken(moved.to, (mover.job.id,)))
            self.queue.changed(mover.branch.path)
            after[mover.job.id] = None
        return Taken(cleared.taken.workers, tuple(after))

    def _give_up(self, claim: Claim, taken: Taken) -> None:
        for worker in taken.workers:
            self.board.room.give_back(claim.work, worker)
        claim.undo()

    def _claim(self, work: Work, workers: int, *, grows: bool) -> Taken | None:
        """Take room that others hold or are leaving, if the job may (R15-R18)."""
        claim = Claim(self.board, self.givers, work, workers)
        if not claim.search():
            if claim.delayed_until_s is not None:
                self.delayed_s.append(claim.delayed_until_s)
            return None
        taken = self._take(work, workers, soon=True)
        if taken is None:
            raise AssertionError("a claim that fits has places")
        victims = [paid.chunk for paid in claim.paid]
        after = dict.fromkeys(taken.after)
        if grows and not after.keys() <= {chunk.work.job.id for chunk in victims}:
            self._give_up(claim, taken)  # a growth holds no promise, so it waits for nobody else
            return None
        for chunk in victims:
            self.board.give(chunk)
            self.queue.changed(chunk.work.branch.path)
            if chunk.fresh:
                self._not_started_after_all(chunk)
            else:
                self._preempt(chunk, work.job.id, "R15")
                after[chunk.work.job.id] = None
        if victims:
            self.queue.reconsider()
        return Taken(taken.workers, tuple(after))

    def _preempt(self, chunk: Chunk, claimant: JobId | None, rule: str) -> None:
        self.leaves.add(chunk.work.age)
        job, lost = chunk.work.job.id, self.givers.lost(chunk)
        before = self.preempts.get((job, claimant))
        workers: tuple[Worker, ...] = chunk.workers
        if before is not None:
            workers, lost = (*before.workers, *workers), before.lost_gpu_s + lost
        self.preempts[job, claimant] = Preempt(job, workers, claimant, rule, lost)

    def _not_started_after_all(self, chunk: Chunk) -> None:
        """A start of this pass gives way: it waits again, and so does who may now fit (R9)."""
        self.givers.remove_fresh(chunk)
        self.board.undo_start(chunk)
        if chunk.core:
            self.queue.put(_alone(chunk.work))
        self.immovable.clear()
        for line in self.backfill.forget():
            self.queue.put(line)
        self.queue.retry()

    def plan(self, *, explain: bool) -> Plan:
        """Return what was decided, and why the others wait."""
        board = self.board
        commands: list[Command] = [*self.preempts.values()]
        for job, entry in board.decided.items():
            commands += [Start(job, part.workers, part.after) for part in entry.starts()]
        over = board.over_quota
        preempts = self.preempts.values()
        return Plan(
            commands=tuple(commands),
            reasons=self._reasons() if explain else {},
            shares=self._shares(),
            over_quota=over.after(board.works, board.decided, preempts) if explain else {},
            wake_s=self._wake_s(),
        )

    def _reasons(self) -> dict[JobId, Reason]:
        waiting = chain(self.queue.waiting(), self.backfill.waiting())
        reasons = reasons_of(self.board, self.givers, waiting)
        reasons.update(held_back(self.backfill, reasons))
        return reasons

    def _wake_s(self) -> float | None:
        """Return when time alone may change the answer.

        A protection ends, a job becomes long-running, a claim has waited long enough, or those who
        were to end before a reservation have not.
        """
        known = [self.board.next_change_s, self.backfill.until_s, *self.delayed_s]
        return min((at for at in known if at is not None), default=None)

    def _shares(self) -> dict[ProjectName, Share]:
        board, standing = self.board, self.standing
        return {
            branch.name: Share(
                None if branch.quota[0] is None else branch.quota[0] // WHOLE_GPU,
                standing.shares[branch.index].gpus // WHOLE_GPU,
                -(-board.ledger.held[branch.index].gpus // WHOLE_GPU),
            )
            for branch in board.tree.branches
        }


def _alone(work: Work, workers: int = 0) -> Line:
    """Return a line of one."""
    line = Line(work, workers)
    line.put(work)
    return line


def _hopeless(
    board: Board, standing: Standing, givers: Givers, backfill: Backfill, waiter: Waiter
) -> bool:
    """Tell of a job that lacks GPUs, and could claim none, without trying it out (R9, R15)."""
    work = waiter.work
    asked = work.need.gpus if waiter.workers else work.core.gpus
    free = board.room.free(work.fit) + backfill.barred_gpus()
    if not asked or asked <= free * WHOLE_GPU or work.fit.part:
        return False
    if backfill.needs_turn(work):
        return False
    most = standing.most_to_claim(work.branch.index)
    if asked <= most:
        return False
    by_youth = standing.above_quota(work.branch.index, work.core)
    return not givers.gives_below(work, by_youth=by_youth)
