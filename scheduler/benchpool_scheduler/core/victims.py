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

Inside a project only lower job priority pays, and at equal priority, as long as the project is
above its quota, what has run long for what has not. A claimant that has run long itself has only
its quota to stand on. Sparing a chunk leaves the paying side with more, so it never makes another
chunk of the set unlawful.

While chunks go, every project only becomes less due to pay, so the next payer is found with a heap
whose entries are looked at again when they come up.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.amounts import NOTHING, WHOLE_GPU
from benchpool_scheduler.core.board import Board
from benchpool_scheduler.core.chunks import Chunk, goes_after
from benchpool_scheduler.core.givers import Givers
from benchpool_scheduler.core.model import NodeName
from benchpool_scheduler.core.placement import fits
from benchpool_scheduler.core.room import NodeRoom
from benchpool_scheduler.core.works import Work

BY_SHARE, BY_QUOTA, BY_PRIORITY = range(3)
"""On what ground a chunk may be taken, in the order in which grounds are used."""

MOST_NODES_TRIED = 64
"""So many nodes are looked at alone, where a wider look was led astray by other nodes."""


@dataclass(frozen=True, slots=True)
class Paid:
    """A chunk that is gone, and on what ground; ``level`` is where the two branches part."""

    chunk: Chunk
    ground: int
    level: int


Payer = tuple[object, ...]


class Claim:
    """One job's claim on room that others hold."""

    def __init__(self, board: Board, givers: Givers, work: Work, workers: int) -> None:
        self.board = board
        self.standing = board.standing
        self.givers = givers
        self.work = work
        self.workers = workers
        self.wanted = work.need.times(workers)
        self.paid: list[Paid] = []
        self.delayed_until_s: float | None = None
        self._nodes = board.room.nodes
        self._gives: dict[int, Callable[[], Chunk | None]] = {}
        self._payable: dict[int, int] = {}

    def search(self, *, best: bool = True) -> bool:
        """Let go of what is needed; tell whether the claimant now fits, else undo everything.

        Args:
            best: Compare nodes; without it the first that does is good enough, for explanations.
        """
        if self.board.ledger.over_guarantee(self.work, self.wanted, soon=True) is not None:
            return False
        if not self.rightful() or not self._enough():
            return False
        patient = self._is_patient()
        if not self._makes_room(best=best):
            return False
        if patient and any(paid.chunk.work.long for paid in self.paid):
            job = self.work.job
            self.delayed_until_s = job.as_of_s - job.waits_s + self.board.policy.claim_delay_s
            self.undo()
            return False
        return True

    def _is_patient(self) -> bool:
        """Tell whether it shall first see if room comes free, before it stops long-running work.

        Only beyond quota: a claim within it never waits (R21).
        """
        waited_s = self.work.job.waited_at(self.givers.now_s)
        return waited_s < self.board.policy.claim_delay_s and not self._ground_holds(BY_QUOTA, 0)

    def _makes_room(self, *, best: bool) -> bool:
        if not best and self.workers == 1 and self.work.fit.gpus > 1 and len(self._nodes) > 1:
            self._payers(None)
            return self._pay_on_one_node(best=False)
        return self._pay(None) or self._pay_on_one_node(best=best)

    def _over_quota(self) -> bool:
        return self.standing.above_quota(self.work.branch.index, self.wanted)

    def rightful(self) -> bool:
        """Tell whether there is any ground at all; room of leaving jobs is claimed by it too."""
        depth = len(self.work.branch.path) - 1
        return (
            self._ground_holds(BY_SHARE, depth)
            or self._ground_holds(BY_QUOTA, depth)
            or self.givers.gives_below(self.work, by_youth=self._over_quota())
        )

    def _enough(self) -> bool:
        """Tell whether what could be given at most makes up for the GPUs that are missing.

        A bound, so that a hopeless claim costs little: a branch gives while it is above its share
        or quota, so at most its surplus and what is left of one chunk.
        """
        soon = self.board.room.free(self.work.fit, soon=True) * WHOLE_GPU
        missing = self.wanted.gpus - soon
        return missing <= 0 or self._most_given(self.board.tree.tops) >= missing

    def _most_given(self, siblings: Sequence[int]) -> int:
        """Return what the projects beside the claimant's path give at most, and its own."""
        mine, tree = self.work.branch.path, self.board.tree
        total = 0
        for index in siblings:
            if index == mine[-1]:
                by_youth = not self.work.long and self._over_quota()
                total += self.givers.most(index, below=self.work.job.priority + by_youth)
            elif index in mine:
                total += self._most_given(tree.branches[index].children)
            elif not tree.gpus_alone:
                total += self._most_below(index)
            elif surplus := self._surplus(index):
                total += min(self._most_below(index), surplus + self.givers.overshoot)
        return total

    def _most_below(self, index: int) -> int:
        children = self.board.tree.branches[index].children
        return sum(map(self._most_below, children)) if children else self.givers.most(index)

    def _surplus(self, index: int) -> int:
        """Return by how much a branch is above its share or its quota, whichever is less."""
        quota = self.board.tree.branches[index].quota[0]
        share = self.standing.shares[index].gpus
        due = share if quota is None else min(share, quota)
        return max(0, self.board.ledger.held[index].gpus - due)

    def _nodes_to_try(self) -> list[NodeRoom]:
        """Return nodes that could do it alone, those that lack least first."""
        gpus, room = self.work.fit.gpus * self.workers, self.board.room
        if not gpus or len(self._nodes) < 2 or not self._payable:
            return []
        nodes: list[NodeRoom] = []
        for node in self.givers.freest(room, self.work.fit):
            missing = node.free_gpus(soon=True) < gpus <= len(node.node.gpus)
            if missing and self._gives_on(node) >= gpus:
                nodes.append(node)
                if len(nodes) == MOST_NODES_TRIED:
                    break
        return sorted(nodes, key=lambda node: node.order)

    def _gives_on(self, node: NodeRoom) -> int:
        """Return how many GPUs the node could have free at most."""
        caps, given = self._payable, self.givers.by_project(node.node.name)
        return node.free_gpus(soon=True) + sum(
            min(gpus, caps[index]) for index, gpus in given.items() if index in caps
        )

    def _cap(self, index: int) -> int:
        """Return how many GPUs a project gives at most."""
        mine, path = self.work.branch.path, self.board.tree.branches[index].path
        apart = next((i for i in path if i not in mine), None)
        if apart is None or not self.board.tree.gpus_alone:
            return self.wanted.gpus
        return (self._surplus(apart) + self.givers.overshoot) // WHOLE_GPU

    def _pay_on_one_node(self, *, best: bool) -> bool:
        """Try nodes alone; keep the try on the best ground that loses least (R18)."""
        found: tuple[tuple[int, float, int], NodeRoom] | None = None
        for node in self._nodes_to_try():
            if self._pay(node):
                if not best:
                    return True
                grounds = max((paid.ground for paid in self.paid), default=0)
                lost = sum(self.givers.lost(paid.chunk) for paid in self.paid)
                key = (grounds, lost, node.order)
                if found is None or key < found[0]:
                    found = key, node
                self.undo()
        return found is not None and self._pay(found[1])

    def _pay(self, node: NodeRoom | None) -> bool:
        """Let chunks go, on one node or anywhere, until the claimant fits."""
        where = None if node is None else node.node.name
        payers = self._payers(where)
        while not self.fits():
            paid = self._next(payers, where)
            if paid is None:
                self.undo()
                return False
            self.paid.append(paid)
            self.board.let_go(paid.chunk)
        self._spare()
        return True

    def fits(self) -> bool:
        """Tell whether the claimant could start once the leaving are gone."""
        board = self.board
        return board.ledger.over_limit(self.work, self.wanted, soon=True) is None and fits(
            self.work, self.workers, board.room, soon=True
        )

    def undo(self) -> None:
        """Everybody holds again."""
        for paid in reversed(self.paid):
            self.board.hold_again(paid.chunk)
        self.paid = []

    # ------------------------------------------------------------------ who pays next

    def _payers(self, where: NodeName | None) -> list[tuple[Payer, int, Paid]]:
        """Return a heap of the projects that could pay, with what each would give first."""
        found: list[tuple[Payer, int, Paid]] = []
        self._gives = {}
        for index in self.givers.projects(where):
            self._gives[index] = self.givers.reader(index, where, self._useful)
            self._offer(found, index, self._gives[index]())
        if where is None:
            self._payable = {index: self._cap(index) for _, index, _ in found}
        return found

    def _next(self, payers: list[tuple[Payer, int, Paid]], where: NodeName | None) -> Paid | None:
        """Return what should pay next, or None when nothing more may be taken."""
        while payers:
            key, index, paid = heapq.heappop(payers)
            now = self._lawful(paid.chunk)
            if now is None:
                continue
            again = self._payer(now.ground, index)
            if payers and again > key and (again, index) > payers[0][:2]:
                heapq.heappush(payers, (again, index, now))
                continue
            self._offer(payers, index, self._gives[index]())
            return now
        return None

    def _offer(
        self, payers: list[tuple[Payer, int, Paid]], index: int, chunk: Chunk | None
    ) -> None:
        if chunk is not None and (paid := self._lawful(chunk)) is not None:
            heapq.heappush(payers, (self._payer(paid.ground, index), index, paid))

    def _useful(self, chunk: Chunk) -> bool:
        """Tell whether the claimant could use its nodes, or is bound by a limit that it fills."""
        may_use, fit = self.board.room.may_use, self.work.fit
        if any(may_use(fit, worker.node) for worker in chunk.workers):
            return True
        return self.board.ledger.over_limit(self.work, self.wanted, soon=True) is not None

    def _lawful(self, chunk: Chunk) -> Paid | None:
        """Return the ground on which the chunk may be taken now, if there is one (R15)."""
        mine, theirs = self.work.branch.path, chunk.work.branch.path
        if mine == theirs:
            lower = goes_after(chunk.work, self.work, by_youth=self._over_quota())
            return Paid(chunk, BY_PRIORITY, len(mine)) if lower else None
        level = next(i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b)
        standing, wanted = self.standing, self.wanted
        if all(standing.above_share(i, wanted) for i in theirs[level:]) and self._ground_holds(
            BY_SHARE, level
        ):
            return Paid(chunk, BY_SHARE, level)
        if standing.above_quota(theirs[level], wanted) and self._ground_holds(BY_QUOTA, level):
            return Paid(chunk, BY_QUOTA, level)
        return None

    def _ground_holds(self, ground: int, level: int) -> bool:
        """Tell whether the claimant's side is entitled from a level of the tree downwards."""
        standing = self.standing
        if ground == BY_SHARE and self.work.long:
            return False
        within = standing.within_share if ground == BY_SHARE else standing.within_quota
        return ground == BY_PRIORITY or all(
            within(index, self.wanted) for index in self.work.branch.path[level:]
        )

    def _payer(self, ground: int, index: int) -> Payer:
        """Return by what projects are compared for paying; the smaller pays first.

        After the ground, the reverse of R11 at every level: above its share, above its quota,
        lower priority, larger part of its due, younger. On the claimant's own path the claim is
        counted.
        """
        standing, tree, wanted = self.standing, self.board.tree, self.wanted
        mine = self.work.branch.path
        key: list[object] = [ground]
        for i in tree.branches[index].path:
            extra = wanted if i in mine else NOTHING
            key += (
                not standing.above_share(i, wanted),
                not standing.above_quota(i, wanted),
                tree.branches[i].priority,
                -standing.dominant(i, extra),
                -i,
            )
        return tuple(key)

    # ------------------------------------------------------------------ sparing

    def _spare(self) -> None:
        """Let every chunk that is not needed hold again, the last to pay first (R18)."""
        stopped = {paid.chunk.work.age for paid in self.paid if paid.chunk.core}
        grounds = Counter((paid.ground, paid.level) for paid in self.paid)
        kept: list[Paid] = []
        for paid in self.paid[::-1]:
            chunk, ground = paid.chunk, (paid.ground, paid.level)
            if not chunk.core and chunk.work.age in stopped:
                kept.append(paid)  # the whole job goes, its surplus with it
                continue
            self.board.hold_again(chunk)
            grounds[ground] -= 1
            if self.fits() and self._still_lawful(chunk, grounds):
                stopped.discard(chunk.work.age)
            else:
                grounds[ground] += 1
                self.board.let_go(chunk)
                kept.append(paid)
        self.paid = kept[::-1]

    def _still_lawful(self, spared: Chunk, grounds: Counter[tuple[int, int]]) -> bool:
        """Tell whether the others may still be taken when this one is spared.

        Only what counts on the claimant's own path matters: its project must stay entitled.
        """
        if self.work.branch.path[0] != spared.work.branch.path[0]:
            return True
        return all(self._ground_holds(ground, level) for (ground, level), n in grounds.items() if n)
