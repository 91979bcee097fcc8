"""Who gives way, so that a rightful claim starts (R15-R19).

One mechanism. What running jobs could give is cut into *chunks*: a surplus worker of an elastic
job, or a whole core. Chunks let go one after the other, the one that should pay first first, each
only if it may be taken at that moment, until the claimant fits. Then, in reverse, every chunk that
turns out not to be needed holds again. What is left is the set: no chunk of it can be spared
(R18). If the claimant does not fit with all of them gone, nothing has happened (R17).

Whether a chunk may be taken is asked before it is subtracted, with those already gone counted as
gone (R15). Between projects the two branches are compared below the point where they part:

- *by share*: the claimant's side stays within its fair share at every level, and the paying side
  is above its own at every level;
- *by quota*: the claimant's side stays within its guaranteed quota at every level, and the paying
  branch is above its quota.

Inside a project only lower job priority pays. Sparing a chunk leaves the paying side with more,
so it never makes another chunk of the set unlawful.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.amounts import Amounts
from benchpool_scheduler.core.board import Board, Chunk
from benchpool_scheduler.core.model import Activity, Job, Policy, Worker
from benchpool_scheduler.core.placement import acceptable, find
from benchpool_scheduler.core.room import NodeRoom
from benchpool_scheduler.core.works import Work

BY_SHARE, BY_QUOTA, BY_PRIORITY = range(3)
"""On what ground a chunk may be taken, in the order in which grounds are used."""


def lost_gpu_s(job: Job, gpus: int, policy: Policy) -> float:
    """Return what stopping costs: progress since the last checkpoint, and a restart (R18)."""
    lost = job.since_checkpoint_s
    if lost is None or not job.checkpoints:
        lost = job.ran_s
    return (lost + policy.restart_s) * gpus


def chunks_of(work: Work, workers: Sequence[Worker], policy: Policy, *, fresh: bool) -> list[Chunk]:
    """Cut a job into what it could give: surplus workers singly, youngest first, then its core."""
    least = work.job.min_workers
    chunks = [Chunk(work, (worker,), False, 0.0, fresh) for worker in reversed(workers[least:])]
    lost = 0.0 if fresh else lost_gpu_s(work.job, work.core.gpus, policy)
    return [*chunks, Chunk(work, tuple(workers[:least]), True, lost, fresh)]


class Chunks:
    """What every project could give, by project age; the first to pay comes first."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.by_project: dict[int, list[Chunk]] = {}
        self.protected: list[Chunk] = []
        for work in board.works:
            if work.job.activity is Activity.RUNNING and work.job.preemptible:
                self._add_running(work)
        for chunks in self.by_project.values():
            chunks.sort(key=lambda chunk: chunk.order)

    def _add_running(self, work: Work) -> None:
        protected = is_protected(work, self.board)
        for chunk in chunks_of(work, work.job.held, self.board.policy, fresh=False):
            if chunk.core and protected:
                self.protected.append(chunk)
            else:
                self.by_project.setdefault(work.branch.index, []).append(chunk)

    def unprotected(self) -> Chunks:
        """Return the same with protected cores as if they were not; for explanations."""
        every = object.__new__(Chunks)
        every.board, every.protected = self.board, []
        every.by_project = {index: list(chunks) for index, chunks in self.by_project.items()}
        for chunk in self.protected:
            every.by_project.setdefault(chunk.work.branch.index, []).append(chunk)
        for chunks in every.by_project.values():
            chunks.sort(key=lambda chunk: chunk.order)
        return every

    def add_fresh(self, work: Work, workers: Sequence[Worker], *, core: bool) -> None:
        """A plain start of this pass could still be given up for a claim."""
        if work.job.preemptible:
            chunks = self.by_project.setdefault(work.branch.index, [])
            chunks.append(Chunk(work, tuple(workers), core, 0.0, fresh=True))
            chunks.sort(key=lambda chunk: chunk.order)

    def remove(self, taken: Iterable[Chunk]) -> None:
        """The chunks are gone for good."""
        for chunk in taken:
            self.by_project[chunk.work.branch.index].remove(chunk)


def is_protected(work: Work, board: Board) -> bool:
    """Tell whether the job's core may not be stopped now (R19)."""
    least = board.tree.min_runtime_s(work.branch, board.policy.min_runtime_s)
    often = work.job.preemptions_last_hour >= board.policy.preemptions_per_hour
    return work.job.ran_s < least or often


@dataclass(frozen=True, slots=True)
class Paid:
    """A chunk that is gone, and on what ground; ``level`` is where the two branches part."""

    chunk: Chunk
    ground: int
    level: int


class Claim:
    """One job's claim on room that others hold."""

    def __init__(self, board: Board, chunks: Chunks, work: Work, workers: int) -> None:
        self.board = board
        self.chunks = chunks
        self.work = work
        self.workers = workers
        self.wanted = work.need.times(workers)
        self.useful = {n.node.name for n in acceptable(work, board.room, board.topology)}
        self.paid: list[Paid] = []
        self._next: dict[int, int] = {}

    def search(self) -> bool:
        """Let go of what is needed; tell whether the claimant now fits, else undo everything."""
        if self.board.ledger.over_guarantee(self.work, self.wanted, soon=True) is not None:
            return False
        if not self._rightful():
            return False
        if self._pay(lambda chunk: True):
            return True
        return self._pay_on_one_node()

    def _rightful(self) -> bool:
        """Tell whether there is any ground at all; room of leaving jobs is claimed by it too."""
        depth = len(self.work.branch.path) - 1
        return (
            self._ground_holds(BY_SHARE, depth)
            or self._ground_holds(BY_QUOTA, depth)
            or self._own_lower() is not None
        )

    def _nodes_to_try(self) -> list[NodeRoom]:
        """Return nodes to look at alone, where a wider look was led astray by other nodes."""
        nodes = [n for n in self.board.room.nodes if n.node.name in self.useful]
        need = self.work.need
        return [
            node
            for node in nodes
            if len(nodes) > 1
            and node.free_gpus(soon=True) < self.wanted.gpus <= len(node.node.gpus)
            and need.gpus
        ]

    def _pay_on_one_node(self) -> bool:
        """Try every node alone; keep the try on the best ground that loses least (R18)."""
        best: tuple[tuple[int, float, int], NodeRoom] | None = None
        for node in self._nodes_to_try():
            if self._pay(self._on(node)):
                grounds = max((paid.ground for paid in self.paid), default=0)
                key = (grounds, sum(paid.chunk.lost for paid in self.paid), node.order)
                if best is None or key < best[0]:
                    best = key, node
                self.undo()
        return best is not None and self._pay(self._on(best[1]))

    def _on(self, node: NodeRoom) -> Callable[[Chunk], bool]:
        def touches(chunk: Chunk) -> bool:
            return any(worker.node == node.node.name for worker in chunk.workers)

        return touches

    def _pay(self, looked_at: Callable[[Chunk], bool]) -> bool:
        self._next = {}
        while not self.fits():
            chunk = self._next_chunk(looked_at)
            if chunk is None:
                self.undo()
                return False
            self.paid.append(chunk)
            self.board.let_go(chunk.chunk)
        self._spare()
        return True

    def fits(self) -> bool:
        """Tell whether the claimant could start once the leaving are gone."""
        board = self.board
        return (
            board.ledger.over_limit(self.work, self.wanted, soon=True) is None
            and find(self.work, self.workers, board.room, board.topology, soon=True) is not None
        )

    def undo(self) -> None:
        """Everybody holds again."""
        for paid in reversed(self.paid):
            self.board.hold_again(paid.chunk)
        self.paid = []

    def _next_chunk(self, looked_at: Callable[[Chunk], bool]) -> Paid | None:
        """Return what should pay next, or None when nothing more may be taken."""
        best: tuple[tuple[object, ...], Paid] | None = None
        for index, chunks in self.chunks.by_project.items():
            position = self._skip(index, chunks, looked_at)
            if position == len(chunks):
                continue
            paid = self._lawful(chunks[position])
            if paid is None:
                continue
            key = (paid.ground, *self._payer(index))
            if best is None or key < best[0]:
                best = key, paid
        if best is None:
            return None
        self._next[best[1].chunk.work.branch.index] += 1
        return best[1]

    def _skip(self, index: int, chunks: list[Chunk], looked_at: Callable[[Chunk], bool]) -> int:
        """Return the position of the project's next chunk that could be of use."""
        position = self._next.get(index, 0)
        while position < len(chunks) and not (
            looked_at(chunks[position]) and self._useful(chunks[position])
        ):
            position += 1
        self._next[index] = position
        return position

    def _useful(self, chunk: Chunk) -> bool:
        """Tell whether the claimant could use its nodes, or is bound by a limit that it fills."""
        if any(worker.node in self.useful for worker in chunk.workers):
            return True
        return self.board.ledger.over_limit(self.work, self.wanted, soon=True) is not None

    def _lawful(self, chunk: Chunk) -> Paid | None:
        """Return the ground on which the chunk may be taken now, if there is one (R15)."""
        mine, theirs = self.work.branch.path, chunk.work.branch.path
        if mine == theirs:
            lower = chunk.work.job.priority < self.work.job.priority
            return Paid(chunk, BY_PRIORITY, len(mine)) if lower else None
        level = next(i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b)
        standing, wanted = self.board.standing, self.wanted
        if all(standing.above_share(i, wanted) for i in theirs[level:]) and self._ground_holds(
            BY_SHARE, level
        ):
            return Paid(chunk, BY_SHARE, level)
        if standing.above_quota(theirs[level], wanted) and self._ground_holds(BY_QUOTA, level):
            return Paid(chunk, BY_QUOTA, level)
        return None

    def _ground_holds(self, ground: int, level: int) -> bool:
        """Tell whether the claimant's side is entitled from a level of the tree downwards."""
        standing, below = self.board.standing, self.work.branch.path[level:]
        within = standing.within_share if ground == BY_SHARE else standing.within_quota
        return ground == BY_PRIORITY or all(within(index, self.wanted) for index in below)

    def _payer(self, index: int) -> tuple[object, ...]:
        """Return by what projects are compared for paying; the smaller pays first.

        The reverse of R11 at every level: above its share, above its quota, lower priority,
        larger part of its due, younger. On the claimant's own path the claim is counted.
        """
        standing, tree = self.board.standing, self.board.tree
        mine = self.work.branch.path
        key: list[object] = []
        for i in tree.branches[index].path:
            extra = self.wanted if i in mine else Amounts()
            key += [
                not standing.above_share(i, self.wanted),
                not standing.above_quota(i, self.wanted),
                tree.branches[i].priority,
                -standing.dominant(i, extra),
                -i,
            ]
        return tuple(key)

    def _own_lower(self) -> Chunk | None:
        chunks = self.chunks.by_project.get(self.work.branch.index, [])
        lower = chunks and chunks[0].work.job.priority < self.work.job.priority
        return chunks[0] if lower else None

    def _spare(self) -> None:
        """Let every chunk that is not needed hold again, the last to pay first (R18)."""
        stopped = {paid.chunk.work.age for paid in self.paid if paid.chunk.core}
        for paid in self.paid[::-1]:
            chunk = paid.chunk
            if not chunk.core and chunk.work.age in stopped:
                continue  # the whole job goes, its surplus with it
            self.board.hold_again(chunk)
            rest = [other for other in self.paid if other is not paid]
            if self.fits() and self._still_lawful(chunk, rest):
                self.paid = rest
                stopped -= {chunk.work.age}
            else:
                self.board.let_go(chunk)

    def _still_lawful(self, spared: Chunk, rest: Iterable[Paid]) -> bool:
        """Tell whether the others may still be taken when this one is spared.

        Only what counts on the claimant's own path matters: its project must stay entitled.
        """
        if self.work.branch.path[0] != spared.work.branch.path[0]:
            return True
        return all(self._ground_holds(paid.ground, paid.level) for paid in rest)


def give_way_to_benches(board: Board, chunks: Chunks) -> list[Chunk]:
    """Let over-quota work go where a node has fewer free GPUs than are kept for benches (R3).

    Takes what is there even when it is not enough: every GPU is one bench more.
    """
    given: list[Chunk] = []
    for node in board.room.nodes:
        gone: list[Chunk] = []
        while node.short_for_benches() > 0:
            chunk = _over_quota_on(node, board, chunks, [*given, *gone])
            if chunk is None:
                break
            board.let_go(chunk)
            gone.append(chunk)
        for chunk in gone[::-1]:
            board.hold_again(chunk)
            if node.short_for_benches() > 0:
                board.let_go(chunk)
                given.append(chunk)
    chunks.remove(given)
    return given


def _over_quota_on(
    node: NodeRoom, board: Board, chunks: Chunks, gone: Sequence[Chunk]
) -> Chunk | None:
    one_gpu = Amounts(gpus=1)
    found: list[tuple[tuple[object, ...], Chunk]] = []
    for index, candidates in chunks.by_project.items():
        path = board.tree.branches[index].path
        if not any(board.standing.above_quota(i, one_gpu) for i in path):
            continue
        for chunk in candidates:
            here = any(worker.node == node.node.name for worker in chunk.workers)
            if here and chunk.work.need.gpus and chunk not in gone:
                due = tuple(-board.standing.dominant(i, Amounts()) for i in path)
                found.append(((due, -index), chunk))
                break
    return min(found, key=lambda entry: entry[0])[1] if found else None
