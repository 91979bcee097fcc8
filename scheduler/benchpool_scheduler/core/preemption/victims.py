"""Who gives way, so that a rightful claim starts (R15-R19).

One mechanism. What running jobs could give is cut into *chunks*: a surplus worker of an elastic
job, or a whole core. Chunks let go one after the other, the one that should pay first first, each
only if it may be taken at that moment, until the claimant fits. Then, in reverse, every chunk that
turns out not to be needed holds again. What is left is the set: no chunk of it can be spared
(R18). If the claimant does not fit with all of them gone, nothing has happened (R17).

A try looks at all nodes, and gives what loses least first. Where that fails, a try with small
chunks first, then tries on single nodes may do; where it stops several jobs, one job alone or a
node alone may lose less. That is a fixed number of tries, whatever the pool.

Sparing a chunk leaves the paying side with more, so it never makes another chunk unlawful.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from benchpool_scheduler.core.capacity.free_capacity import NodeRoom
from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.cluster.cluster_state import Board
from benchpool_scheduler.core.cluster.preemption_units import Chunk
from benchpool_scheduler.core.jobs.job_info import Work
from benchpool_scheduler.core.model import NodeName
from benchpool_scheduler.core.preemption.candidates import Givers
from benchpool_scheduler.core.preemption.entitlement import Entitlement, Paid
from benchpool_scheduler.core.preemption.victim_queue import Payers

MOST_NODES_TRIED = 64
"""So many nodes are looked at alone, where a wider look was led astray by other nodes."""

MOST_NODES_COMPARED = 8
"""So many nodes are looked at alone, where a wider look stops several jobs."""

FEW = 16
"""Where more chunks than these pay, no other way is looked for."""


class Claim:
    """One job's claim on room that others hold.

    Attributes:
        paid: What was let go for it so far.
        delayed_until_s: When it may stop long-running work, where only that holds it up (R19).
    """

    def __init__(self, board: Board, givers: Givers, work: Work, workers: int) -> None:
        self.board = board
        self.givers = givers
        self.work = work
        self.workers = workers
        self.entitled = Entitlement(board, givers, work, workers)
        self.wanted = self.entitled.wanted
        self.paid: list[Paid] = []
        self._before = board.room.mark()
        self.delayed_until_s: float | None = None
        self._payable: dict[int, int] = {}

    def search(self, *, best: bool = True, hint: NodeName | None = None) -> bool:
        """Let go of what is needed; tell whether the claimant now fits, else undo everything.

        Args:
            best: Compare ways; without it the first that does is good enough, for explanations.
            hint: A node to look at first, where the first that does is good enough.
        """
        if self.board.ledger.over_guarantee(self.work, self.wanted, soon=True) is not None:
            return False
        if not self.entitled.rightful() or not self.entitled.enough():
            return False
        patient = self.is_patient()
        if not self._makes_room(best=best, hint=hint):
            return False
        if patient and any(paid.chunk.work.long for paid in self.paid):
            job = self.work.job
            self.delayed_until_s = job.as_of_s - job.waits_s + self.board.policy.claim_delay_s
            self.undo()
            return False
        return True

    def is_patient(self) -> bool:
        """Tell whether it shall first see if room comes free, before it stops long-running work.

        Only beyond quota: a claim within it never waits (R21).
        """
        waited_s = self.work.job.waited_at(self.givers.now_s)
        return waited_s < self.board.policy.claim_delay_s and not self.entitled.in_quota()

    def _makes_room(self, *, best: bool, hint: NodeName | None) -> bool:
        if hint is not None and self._pay(Payers(self.entitled, hint)):
            return True
        if not best:
            self._payable = self._could_pay()
            if self._pay_on_one_node(MOST_NODES_TRIED, best=False):
                return True
            if self._alone_on_a_node():
                return False
        payers = Payers(self.entitled)
        self._payable = {index: self.entitled.most_from(index) for index in payers.projects}
        if self._pay(payers):
            if best and 1 < len(self.paid) <= FEW:
                self._look_for_less()
            return True
        if self._payable and self._pay(Payers(self.entitled, smallest=True)):
            return True
        return best and (
            self._pay_on_one_node(MOST_NODES_TRIED, best=True) or self._pay_node_by_node()
        )

    def _could_pay(self) -> dict[int, int]:
        """Return who may be made to pay, with its GPUs at most, without asking who goes first."""
        entitled, found = self.entitled, dict[int, int]()
        for index in self.givers.projects():
            chunk = self.givers.lowest(index)
            if chunk is not None and entitled.lawful(chunk) is not None:
                found[index] = entitled.most_from(index)
        return found

    def fits(self) -> bool:
        """Tell whether the claimant could start once the leaving are gone."""
        board = self.board
        return board.ledger.over_limit(self.work, self.wanted, soon=True) is None and fits(
            self.work, self.workers, board.room, soon=True
        )

    def undo(self) -> None:
        """Everybody holds again."""
        for paid in reversed(self.paid):
            self._hold_again(paid.chunk)
        self.paid = []
        self.board.room.back_to(self._before)

    @property
    def lost(self) -> float:
        """Return the GPU seconds that are lost by what was let go (R18)."""
        return sum(self.givers.lost(paid.chunk) for paid in self.paid)

    # ------------------------------------------------------------------ one try

    def _pay(self, payers: Payers) -> bool:
        """Let chunks go until the claimant fits; without that, nothing has happened."""
        paid = None
        while not self.fits():
            paid = payers.next()
            if paid is None:
                self.undo()
                return False
            self._take(paid)
            payers.taken(paid)
        self._spare(paid)
        return True

    def _take(self, paid: Paid) -> None:
        """Let a chunk go; with the core of a job goes all that it has."""
        self._let_go(paid.chunk)
        self.paid.append(paid)
        if paid.chunk.core:
            for chunk in self.givers.surplus_of(paid.chunk):
                self._let_go(chunk)
                self.paid.append(Paid(chunk, paid.ground, paid.level))

    def _let_go(self, chunk: Chunk) -> None:
        chunk.paying = True
        self.board.let_go(chunk)

    def _hold_again(self, chunk: Chunk) -> None:
        chunk.paying = False
        self.board.hold_again(chunk)

    def _spare(self, last: Paid | None) -> None:
        """Let every chunk that is not needed hold again, the last to pay first (R18).

        The very last is needed: with all others gone the claimant did not fit.
        """
        stopped = {paid.chunk.work.age for paid in self.paid if paid.chunk.core}
        grounds = Counter((paid.ground, paid.level) for paid in self.paid)
        kept: list[Paid] = []
        cores = [paid for paid in reversed(self.paid) if paid.chunk.core]
        surplus = [paid for paid in reversed(self.paid) if not paid.chunk.core]
        for paid in (*cores, *surplus):
            chunk, ground = paid.chunk, (paid.ground, paid.level)
            if not chunk.core and chunk.work.age in stopped:
                kept.append(paid)  # the whole job goes, its surplus with it
                continue
            if paid is last:
                kept.append(paid)
                continue
            self._hold_again(chunk)
            grounds[ground] -= 1
            if self.fits() and self._still_lawful(chunk, grounds):
                stopped.discard(chunk.work.age)
            else:
                grounds[ground] += 1
                self._let_go(chunk)
                kept.append(paid)
        left = {id(paid) for paid in kept}
        self.paid = [paid for paid in self.paid if id(paid) in left]

    def _still_lawful(self, spared: Chunk, grounds: Counter[tuple[int, int]]) -> bool:
        """Tell whether the others may still be taken when this one is spared.

        Only what counts on the claimant's own path matters: its project must stay entitled.
        """
        if self.work.branch.path[0] != spared.work.branch.path[0]:
            return True
        return all(
            self.entitled.holds(ground, level) for (ground, level), n in grounds.items() if n
        )

    # ------------------------------------------------------------------ other ways

    def _alone_on_a_node(self) -> bool:
        """Tell whether it is one worker with several GPUs, for which the node matters."""
        return self.workers == 1 and self.work.fit.gpus > 1 and len(self.board.room.nodes) > 1

    def _look_for_less(self) -> None:
        """Several chunks pay: see whether one alone, or a node alone, loses less (R18)."""
        grounds, lost = max(paid.ground for paid in self.paid), self.lost
        payers = {paid.chunk.work.branch.index for paid in self.paid}
        top = max(paid.chunk.work.rank for paid in self.paid)
        so_far = self.paid
        self.undo()
        if len(payers) == 1 and self._pay_with_one(next(iter(payers)), top, lost):
            return
        if self._alone_on_a_node() and self._pay_on_one_node(MOST_NODES_COMPARED, best=True):
            fair = max(paid.ground for paid in self.paid) <= grounds
            same = {paid.chunk.work.branch.index for paid in self.paid} <= payers
            lower = max(paid.chunk.work.rank for paid in self.paid) <= top
            if fair and same and lower and self.lost < lost:
                return
            self.undo()
        for paid in so_far:
            self._let_go(paid.chunk)
        self.paid = so_far

    def _pay_with_one(self, index: int, top: tuple[int, bool], most: float) -> bool:
        """Try to take one job alone that loses less than so much; of each size the cheapest."""
        found: tuple[float, Paid] | None = None
        for chunk in self.givers.cheapest(index):
            lost = self.givers.lost(chunk)
            if lost >= (most if found is None else found[0]) or chunk.work.rank > top:
                continue
            if (paid := self.entitled.lawful(chunk)) is None:
                continue
            self._take(paid)
            if self.fits():
                found = lost, paid
            self.undo()
        if found is not None:
            self._take(found[1])
        return found is not None

    def _pay_on_one_node(self, most: int, *, best: bool) -> bool:
        """Try nodes alone; keep the try on the best ground that loses least (R18)."""
        found: tuple[tuple[int, float, int], NodeRoom] | None = None
        for node in self._nodes_to_try(most):
            if self._pay(Payers(self.entitled, node.node.name)):
                if not best:
                    return True
                grounds = max((paid.ground for paid in self.paid), default=0)
                key = (grounds, self.lost, node.order)
                if found is None or key < found[0]:
                    found = key, node
                self.undo()
        return found is not None and self._pay(Payers(self.entitled, found[1].node.name))

    def _pay_node_by_node(self) -> bool:
        """Clear one node after another, for a gang whose workers need several GPUs on a node each.

        The nodes that lose least first; what does not make room for a worker holds again.
        """
        room, fit = self.board.room, self.work.fit
        if self.workers == 1 or fit.gpus < 2 or len(room.nodes) < 2 or not self._payable:
            return False
        most = 2 * self.workers + MOST_NODES_COMPARED
        nodes = list(islice(self.givers.freest(room, fit), 4 * most))
        for node in sorted(nodes, key=self._cost_of)[:most]:
            if self.fits():
                break
            self._clear(node)
        if not self.fits():
            self.undo()
            return False
        self._spare(None)
        return True

    def _cost_of(self, node: NodeRoom) -> tuple[float, int]:
        payable = self._payable
        here = [c for c in self.givers.on_node(node.node.name) if c.work.branch.index in payable]
        return sum(map(self.givers.lost, here)), node.order

    def _clear(self, node: NodeRoom) -> None:
        """Let go on a node as long as that makes room for more workers."""
        payers = Payers(self.entitled, node.node.name)
        slots, useful = node.slots(self.work.fit, soon=True), len(self.paid)
        while (paid := payers.next()) is not None:
            self._take(paid)
            payers.taken(paid)
            if (now := node.slots(self.work.fit, soon=True)) > slots:
                slots, useful = now, len(self.paid)
                if self.fits():
                    break
        while len(self.paid) > useful:
            self._hold_again(self.paid.pop().chunk)

    def _nodes_to_try(self, most: int) -> Iterator[NodeRoom]:
        """Return nodes that could do it alone, those that lack least first."""
        gpus, room = self.work.fit.gpus * self.workers, self.board.room
        if not gpus or len(room.nodes) < 2 or not self._payable:
            return iter(())
        able = (
            node
            for node in self.givers.freest(room, self.work.fit)
            if node.free_gpus(soon=True) < gpus <= len(node.node.gpus)
            and self._gives_on(node) >= gpus
        )
        return islice(able, most)

    def _gives_on(self, node: NodeRoom) -> int:
        """Return how many GPUs the node could have free at most."""
        given = self.givers.by_project(node.node.name)
        return node.free_gpus(soon=True) + sum(
            min(gpus, self._payable[index])
            for index, gpus in given.items()
            if index in self._payable
        )
