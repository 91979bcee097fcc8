"""Who gives way, so that a rightful claimant starts (R15-R19).

One mechanism. What running jobs could give is cut into *units*: a surplus worker of an elastic
job, or its smallest gang. Units are let go one after the other, the one that should pay first
first, each only if it may be taken at that moment, until the claimant fits. Then comes *reprieve*:
in reverse, every unit that turns out not to be needed holds again. What is left is the set: no unit
of it can be spared (R18). If the claimant does not fit with all of them gone, nothing has happened
(R17).

A try looks at all nodes, and gives what loses least first. Where that fails, a try with small
units first, then tries on single nodes may do; where it stops several jobs, one job alone or a
node alone may lose less. That is a fixed number of tries, whatever the pool.

Sparing a unit leaves the paying side with more, so it never makes another unit unlawful.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice

from benchpool_scheduler.core.capacity.free_capacity import NodeCapacity, Savepoint
from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import NodeName
from benchpool_scheduler.core.preemption.candidates import VictimCandidates
from benchpool_scheduler.core.preemption.entitlement import Entitlement, Victim
from benchpool_scheduler.core.preemption.smallest_set import Group, smallest_set, stays
from benchpool_scheduler.core.preemption.victim_queue import VictimQueue

MOST_NODES_TRIED = 64
"""At most this many nodes are looked at alone, where a wider look was led astray by other nodes."""

MOST_NODES_COMPARED = 8
"""At most this many nodes are looked at alone, where a wider look stops several jobs."""

FEW = 16
"""Where more units than these pay, no other way is looked for."""


class PreemptionAttempt:
    """One job's attempt to get room that others hold.

    Attributes:
        victims: What was let go for it so far.
        delayed_until_s: When it may stop long-running work, where only that holds it up (R19).
    """

    def __init__(
        self, state: ClusterState, candidates: VictimCandidates, info: JobInfo, workers: int
    ) -> None:
        self.state = state
        self.candidates = candidates
        self.info = info
        self.workers = workers
        self.entitled = Entitlement(state, candidates, info, workers)
        self.wanted = self.entitled.wanted
        self.victims: list[Victim] = []
        self._before: Savepoint | None = None
        self.delayed_until_s: float | None = None
        self._payable: dict[int, int] = {}

    def search(self, *, best: bool = True, hint: NodeName | None = None) -> bool:
        """Let go of what is needed; tell whether the claimant now fits, else undo everything.

        Args:
            best: Compare ways; without it the first that does is good enough, for explanations.
            hint: A node to look at first, where the first that does is good enough.
        """
        if self.state.ledger.over_guarantee(self.info, self.wanted, releasing=True) is not None:
            return False
        if not self.entitled.rightful() or not self.entitled.enough():
            return False
        self._before = self.state.changes.savepoint()
        patient = self.is_patient()
        if not self._makes_room(best=best, hint=hint):
            return False
        if patient and any(victim.unit.info.long for victim in self.victims):
            job = self.info.job
            self.delayed_until_s = job.as_of_s - job.waits_s + self.state.policy.claim_delay_s
            self.undo()
            return False
        return True

    def is_patient(self) -> bool:
        """Tell whether it shall first see if room comes free, before it stops long-running work.

        Only beyond quota: an attempt within it never waits (R21).
        """
        waited_s = self.info.job.waited_at(self.candidates.now_s)
        return waited_s < self.state.policy.claim_delay_s and not self.entitled.in_quota()

    def _makes_room(self, *, best: bool, hint: NodeName | None) -> bool:
        if hint is not None and self._pay(VictimQueue(self.entitled, hint)):
            return True
        if not best:
            self._payable = self._could_pay()
            if self._pay_on_one_node(MOST_NODES_TRIED, best=False):
                return True
            if self._alone_on_a_node():
                return False
        queue = VictimQueue(self.entitled)
        self._payable = {index: self.entitled.most_from(index) for index in queue.projects}
        if self._pay(queue):
            if best and 1 < len(self.victims) <= FEW:
                self._look_for_less()
            return True
        if self._payable and self._pay(VictimQueue(self.entitled, smallest=True)):
            return True
        return best and (
            self._pay_on_one_node(MOST_NODES_TRIED, best=True) or self._pay_node_by_node()
        )

    def _could_pay(self) -> dict[int, int]:
        """Return who may be made to pay, with its GPUs at most, without asking who goes first."""
        entitled, found = self.entitled, dict[int, int]()
        for index in self.candidates.projects():
            unit = self.candidates.lowest(index)
            if unit is not None and entitled.lawful(unit) is not None:
                found[index] = entitled.most_from(index)
        return found

    def fits(self) -> bool:
        """Tell whether the claimant could start once the leaving are gone."""
        state = self.state
        return state.ledger.over_limit(self.info, self.wanted, releasing=True) is None and fits(
            self.info, self.workers, state.capacity, releasing=True
        )

    def undo(self) -> None:
        """Everybody holds again."""
        self.victims = []
        if self._before is not None:
            self.state.changes.rollback(self._before)

    @property
    def lost(self) -> float:
        """Return the GPU seconds that are lost by what was let go (R18)."""
        return sum(self.candidates.lost(victim.unit) for victim in self.victims)

    # ------------------------------------------------------------------ one try

    def _pay(self, queue: VictimQueue) -> bool:
        """Let units go until the claimant fits; without that, nothing has happened."""
        if smallest_set(self.state, self._next(queue), self.fits, self._reprieved) is None:
            self.undo()
            return False
        return True

    def _next(self, queue: VictimQueue) -> Iterator[Group]:
        """Yield who pays next; with the smallest gang of a job goes all that it has."""
        while (victim := queue.next()) is not None:
            yield self._with_surplus(victim)
            queue.taken(victim)

    def _with_surplus(self, victim: Victim) -> Group:
        """Count a unit as a victim, and with the smallest gang of a job all that it has."""
        self.victims.append(victim)
        if not victim.unit.is_gang:
            return (victim.unit,)
        surplus = self.candidates.surplus_of(victim.unit)
        self.victims += [Victim(unit, victim.ground, victim.level) for unit in surplus]
        return (victim.unit, *surplus)

    def _take(self, victim: Victim) -> None:
        for unit in self._with_surplus(victim):
            self.state.changes.release(unit)

    def _reprieved(self, gone: list[Group]) -> list[Group]:
        """Let every unit stay that is not needed, the last to pay first (R18).

        The very last is needed: with all others gone the claimant did not fit.
        """
        if len(self.victims) < 2:
            return []
        return self._reprieve(gone[-1][0])

    def _reprieve(self, last: PreemptionUnit | None) -> list[Group]:
        stopped = {victim.unit.info.age for victim in self.victims if victim.unit.is_gang}
        grounds = Counter((victim.ground, victim.level) for victim in self.victims)
        gangs = [victim for victim in reversed(self.victims) if victim.unit.is_gang]
        surplus = [victim for victim in reversed(self.victims) if not victim.unit.is_gang]
        stay: dict[PreemptionUnit, Group] = {}
        for victim in (*gangs, *surplus):
            unit, ground = victim.unit, (victim.ground, victim.level)
            if unit is last or (not unit.is_gang and unit.info.age in stopped):
                continue  # where the whole job goes, its surplus goes with it
            grounds[ground] -= 1
            if stays(self.state, (unit,), partial(self._enough_without, unit, grounds)):
                stopped.discard(unit.info.age)
                stay[unit] = (unit,)
            else:
                grounds[ground] += 1
        self.victims = [victim for victim in self.victims if victim.unit not in stay]
        return [*stay.values()]

    def _enough_without(self, unit: PreemptionUnit, grounds: Counter[tuple[int, int]]) -> bool:
        return self.fits() and self._still_lawful(unit, grounds)

    def _still_lawful(self, spared: PreemptionUnit, grounds: Counter[tuple[int, int]]) -> bool:
        """Tell whether the others may still be taken when this one is spared.

        Only what counts on the claimant's own path matters: its project must stay entitled.
        """
        if self.info.branch.path[0] != spared.info.branch.path[0]:
            return True
        return all(
            self.entitled.holds(ground, level) for (ground, level), n in grounds.items() if n
        )

    # ------------------------------------------------------------------ other ways

    def _alone_on_a_node(self) -> bool:
        """Tell whether it is one worker with several GPUs, for which the node matters."""
        return (
            self.workers == 1
            and self.info.requirements.gpus > 1
            and len(self.state.capacity.nodes) > 1
        )

    def _look_for_less(self) -> None:
        """Several units pay: see whether one alone, or a node alone, loses less (R18)."""
        grounds, lost = max(victim.ground for victim in self.victims), self.lost
        losing = {victim.unit.info.branch.index for victim in self.victims}
        top = max(victim.unit.info.rank for victim in self.victims)
        so_far = self.victims
        self.undo()
        if len(losing) == 1 and self._pay_with_one(next(iter(losing)), top, lost):
            return
        if self._alone_on_a_node() and self._pay_on_one_node(MOST_NODES_COMPARED, best=True):
            fair = max(victim.ground for victim in self.victims) <= grounds
            same = {victim.unit.info.branch.index for victim in self.victims} <= losing
            lower = max(victim.unit.info.rank for victim in self.victims) <= top
            if fair and same and lower and self.lost < lost:
                return
            self.undo()
        for victim in so_far:
            self.state.changes.release(victim.unit)
        self.victims = so_far

    def _pay_with_one(self, index: int, top: tuple[int, bool], most: float) -> bool:
        """Try to take one job alone that loses less than so much; of each size the cheapest."""
        found: tuple[float, Victim] | None = None
        for unit in self.candidates.cheapest(index):
            lost = self.candidates.lost(unit)
            if lost >= (most if found is None else found[0]) or unit.info.rank > top:
                continue
            if (victim := self.entitled.lawful(unit)) is None:
                continue
            self._take(victim)
            if self.fits():
                found = lost, victim
            self.undo()
        if found is not None:
            self._take(found[1])
        return found is not None

    def _pay_on_one_node(self, most: int, *, best: bool) -> bool:
        """Try nodes alone; keep the try on the best ground that loses least (R18)."""
        found: tuple[tuple[int, float, int], NodeCapacity] | None = None
        for node in self._nodes_to_try(most):
            if self._pay(VictimQueue(self.entitled, node.node.name)):
                if not best:
                    return True
                grounds = max((victim.ground for victim in self.victims), default=0)
                key = (grounds, self.lost, node.order)
                if found is None or key < found[0]:
                    found = key, node
                self.undo()
        return found is not None and self._pay(VictimQueue(self.entitled, found[1].node.name))

    def _pay_node_by_node(self) -> bool:
        """Clear one node after another, for a gang whose workers need several GPUs on a node each.

        The nodes that lose least first; what does not make room for a worker holds again.
        """
        capacity, requirements = self.state.capacity, self.info.requirements
        if (
            self.workers == 1
            or requirements.gpus < 2
            or len(capacity.nodes) < 2
            or not self._payable
        ):
            return False
        most = 2 * self.workers + MOST_NODES_COMPARED
        nodes = list(islice(self.candidates.freest(capacity, requirements), 4 * most))
        for node in sorted(nodes, key=self._cost_of)[:most]:
            if self.fits():
                break
            self._clear(node)
        if not self.fits():
            self.undo()
            return False
        self._reprieve(None)
        return True

    def _cost_of(self, node: NodeCapacity) -> tuple[float, int]:
        payable = self._payable
        here = [
            c for c in self.candidates.on_node(node.node.name) if c.info.branch.index in payable
        ]
        return sum(map(self.candidates.lost, here)), node.order

    def _clear(self, node: NodeCapacity) -> None:
        """Let go on a node as long as that makes room for more workers."""
        queue = VictimQueue(self.entitled, node.node.name)
        slots, useful = node.slots(self.info.requirements, releasing=True), len(self.victims)
        before = self.state.changes.savepoint()
        while (victim := queue.next()) is not None:
            self._take(victim)
            queue.taken(victim)
            if (now := node.slots(self.info.requirements, releasing=True)) > slots:
                slots, useful, before = now, len(self.victims), self.state.changes.savepoint()
                if self.fits():
                    break
        del self.victims[useful:]
        self.state.changes.rollback(before)

    def _nodes_to_try(self, most: int) -> Iterator[NodeCapacity]:
        """Return nodes that could do it alone, those that lack least first."""
        gpus, capacity = self.info.requirements.gpus * self.workers, self.state.capacity
        if not gpus or len(capacity.nodes) < 2 or not self._payable:
            return iter(())
        able = (
            node
            for node in self.candidates.freest(capacity, self.info.requirements)
            if node.free_gpus(releasing=True) < gpus <= len(node.node.gpus)
            and self._gives_on(node) >= gpus
        )
        return islice(able, most)

    def _gives_on(self, node: NodeCapacity) -> int:
        """Return how many GPUs the node could have free at most."""
        given = self.candidates.by_project(node.node.name)
        return node.free_gpus(releasing=True) + sum(
            min(gpus, self._payable[index])
            for index, gpus in given.items()
            if index in self._payable
        )
