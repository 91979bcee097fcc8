"""One pass: a snapshot goes in, a plan comes out.

    snapshot ── shares ── benches first ── promises ── turns ── reasons ── plan
                (R4-R7)   (R3)             (R20)      (R8-R18)  (R22)

The jobs take turns (R11). The one whose turn it is starts on what is free, if it fits and no
limit forbids it (R8-R10); else others make room by moving, where that helps (R18); else it claims
room from others, if it may (R15-R18); else it waits and blocks nobody (R9).

Two views of the pool are kept apart all the way: a plain start sees the pool as it is, a claim
sees it as it will be when those who are leaving have gone. A job that was promised room keeps it
and makes nobody else leave (R20).

Nothing is searched: every job has its turn once, and a pass is bounded by jobs times nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.core.board import Board, Chunk
from benchpool_scheduler.core.model import (
    Activity,
    Command,
    JobId,
    Plan,
    Preempt,
    ProjectName,
    Share,
    Snapshot,
    Start,
)
from benchpool_scheduler.core.moves import make_room
from benchpool_scheduler.core.ordering import Turns
from benchpool_scheduler.core.placement import find
from benchpool_scheduler.core.reasons import reasons_of
from benchpool_scheduler.core.room import Taken
from benchpool_scheduler.core.victims import Chunks, Claim, give_way_to_benches
from benchpool_scheduler.core.works import Work


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
    run = Pass(snapshot)
    run.benches()
    run.promises()
    run.turns()
    return run.plan()


class Pass:
    """The steps of one pass over a board."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.board = Board(snapshot)
        self.chunks = Chunks(self.board)
        self.preempts: list[Preempt] = []
        self.leaves: set[int] = set()
        self.failed: set[tuple[object, ...]] = set()
        self.blocked: list[tuple[Work, int]] = []
        past = {
            (self.board.tree.of(use.project).index, use.name): use.used_gpu_s
            for use in snapshot.users
        }
        self.queue = Turns(self.board.standing, past)

    def benches(self) -> None:
        """Where benches lack room, preemptible over-quota work gives way (R3)."""
        for chunk in give_way_to_benches(self.board, self.chunks):
            self._preempt(chunk, None, "R3")

    def promises(self) -> None:
        """Jobs that were promised room come first and take it, in the order of R11 (R20)."""
        promised = Turns(self.board.standing, self.queue.past)
        for work in self.board.works:
            if work.queued and work.job.earmarked:
                promised.put(work)
            elif work.job.activity is Activity.TERMINATING and work.job.promised:
                self._keep_move(work)
        while (waiter := promised.take()) is not None:
            work = waiter[0]
            taken = self._keep_promise(work)
            if taken is None:
                self.queue.put(work)
            else:
                self.board.start(work, taken)
                promised.changed(work.branch)
                self._wants_more(work, work.job.min_workers)

    def _keep_move(self, work: Work) -> None:
        """Keep the new places of a job that is leaving its old ones."""
        if (taken := self.board.room.take_promised(work, work.job.promised)) is not None:
            after = dict.fromkeys([*taken.after, work.job.id])
            self.board.start(work, Taken(taken.workers, tuple(after)))

    def _keep_promise(self, work: Work) -> Taken | None:
        board, job = self.board, work.job
        if board.ledger.bound(work, work.core, soon=True) is not None:
            return None
        if len(job.promised) == job.min_workers:
            taken = board.room.take_promised(work, job.promised)
            if taken is not None:
                return self._behind_limit(work, taken)
        return self._take(work, job.min_workers, soon=True)

    def turns(self) -> None:
        """Every waiting job has its turn; then those that could grow."""
        for work in self.board.works:
            if work.queued and not work.job.earmarked:
                self.queue.put(work)
            elif work.job.activity is Activity.RUNNING:
                self._wants_more(work, len(work.job.held))
        while (waiter := self.queue.take()) is not None:
            work, workers = waiter
            if work.age in self.leaves:
                continue
            shape = (work.age, "grows") if workers else work.shape
            if shape in self.failed or not self._turn(work, workers):
                self.failed.add(shape)
                self.blocked.append(waiter)

    def _turn(self, work: Work, workers: int) -> bool:
        """Start or grow the job, plainly or by a claim; tell whether it did."""
        more = 1 if workers else work.job.min_workers
        if (taken := self._plain(work, more)) is not None:
            self.board.start(work, taken)
            self.chunks.add_fresh(work, taken.workers, core=not workers)
        elif (taken := self._move(work, more)) is not None or (
            taken := self._claim(work, more)
        ) is not None:
            self.board.start(work, taken)
        else:
            return False
        self.queue.changed(work.branch)
        self._wants_more(work, workers + more)
        return True

    def _wants_more(self, work: Work, workers: int) -> None:
        if workers < work.job.workers:
            self.queue.put(work, workers)

    def _plain(self, work: Work, workers: int) -> Taken | None:
        """Take what is free now (R8-R10)."""
        if self.board.ledger.bound(work, work.need.times(workers), soon=False) is not None:
            return None
        return self._take(work, workers, soon=False)

    def _take(self, work: Work, workers: int, *, soon: bool) -> Taken | None:
        board = self.board
        places = find(work, workers, board.room, board.topology, soon=soon)
        if places is None:
            return None
        return self._behind_limit(work, board.room.take(work, places))

    def _behind_limit(self, work: Work, taken: Taken) -> Taken:
        """Add who must leave before the job is within its limits and quotas."""
        board, after = self.board, dict.fromkeys(taken.after)
        amounts = work.need.times(len(taken.workers))
        over = board.ledger.bound(work, amounts, soon=False)
        if over is not None:
            after.update(dict.fromkeys(board.leaving_below(over[0])))
        return Taken(taken.workers, tuple(after))

    def _move(self, work: Work, workers: int) -> Taken | None:
        """Take room that others make by going on elsewhere (R18)."""
        cleared = make_room(self.board, self.chunks, work, workers)
        if cleared is None:
            return None
        self.chunks.remove([moved.chunk for moved in cleared.moved])
        after = dict.fromkeys(cleared.taken.after)
        for moved in cleared.moved:
            mover = moved.chunk.work
            self._preempt(moved.chunk, work.job.id, "R18")
            self.board.start(mover, Taken(moved.to, (mover.job.id,)))
            self.queue.changed(mover.branch)
            after[mover.job.id] = None
        return Taken(cleared.taken.workers, tuple(after))

    def _claim(self, work: Work, workers: int) -> Taken | None:
        """Take room that others hold or are leaving, if the job may (R15-R18)."""
        claim = Claim(self.board, self.chunks, work, workers)
        if not claim.search():
            return None
        taken = self._take(work, workers, soon=True)
        if taken is None:
            raise AssertionError("a claim that fits has places")
        victims = [paid.chunk for paid in claim.paid]
        self.chunks.remove(victims)
        after = dict.fromkeys(taken.after)
        for chunk in victims:
            self.queue.changed(chunk.work.branch)
            if chunk.fresh:
                self._not_started_after_all(chunk)
            else:
                self._preempt(chunk, work.job.id, "R15")
                after[chunk.work.job.id] = None
        return Taken(taken.workers, tuple(after))

    def _preempt(self, chunk: Chunk, claimant: JobId | None, rule: str) -> None:
        self.leaves.add(chunk.work.age)
        job = chunk.work.job.id
        for position, command in enumerate(self.preempts):
            if command.job == job and command.claimant == claimant:
                self.preempts[position] = Preempt(
                    job,
                    (*command.workers, *chunk.workers),
                    claimant,
                    rule,
                    command.lost_gpu_s + chunk.lost,
                )
                return
        self.preempts.append(Preempt(job, chunk.workers, claimant, rule, chunk.lost))

    def _not_started_after_all(self, chunk: Chunk) -> None:
        """A start of this pass gives way: it waits again, and so does who may now fit (R9)."""
        self.board.undo_start(chunk)
        if chunk.core:
            self.queue.put(chunk.work)
        self.failed.clear()
        for work, workers in self.blocked:
            self.queue.put(work, workers)
        self.blocked = []

    def plan(self) -> Plan:
        """Return what was decided, and why the others wait."""
        commands: list[Command] = [*self.preempts]
        for job, entry in self.board.decided.items():
            commands += [Start(job, part.workers, part.after) for part in entry.starts()]
        waiting = [work for work, workers in self.blocked if not workers]
        return Plan(
            commands=tuple(commands),
            reasons=reasons_of(self.board, self.chunks, waiting),
            shares=self._shares(),
            over_quota=over_quota(self.board, self.preempts),
        )

    def _shares(self) -> dict[ProjectName, Share]:
        board = self.board
        return {
            branch.name: Share(
                branch.quota[0],
                board.standing.shares[branch.index].gpus,
                board.ledger.held[branch.index].gpus,
            )
            for branch in board.tree.branches
        }


def over_quota(board: Board, preempts: Sequence[Preempt]) -> frozenset[JobId]:
    """Return the jobs that hold GPUs above their project's quota.

    A project's quota covers its jobs in the order in which it would keep them: non-preemptible,
    then priority, then age.
    """
    lost: dict[JobId, int] = {}
    for command in preempts:
        lost[command.job] = lost.get(command.job, 0) + len(command.workers)
    covered = [0] * len(board.tree.branches)
    over: list[JobId] = []
    by_worth = sorted(board.works, key=lambda w: (w.job.preemptible, -w.job.priority, w.age))
    for work in by_worth:
        gpus = work.need.gpus * (_workers_after(board, work) - lost.get(work.job.id, 0))
        covered[work.branch.index] += gpus
        quota = work.branch.quota[0]
        if quota is not None and gpus and covered[work.branch.index] > quota:
            over.append(work.job.id)
    return frozenset(over)


def _workers_after(board: Board, work: Work) -> int:
    """Return how many workers run after the commands, before anything is taken from the job.

    Workers that must wait for others to leave do not run yet.
    """
    decided = board.decided.get(work.job.id)
    held = len(work.job.held) if work.job.activity is Activity.RUNNING else 0
    parts = decided.starts() if decided is not None else ()
    return held + sum(len(part.workers) for part in parts if not part.after)
