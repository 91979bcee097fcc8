"""Choice of victims so that an entitled claimant starts (R15-R19).

There is one mechanism. Running jobs are split into *units*: a surplus worker of an elastic job, or
its smallest gang. Units are taken one after the other in the order of paying, each only if it may
be taken at that moment, until the claimant fits. Then comes *reprieve*: in reverse order, every
unit that is not needed is returned. No unit of the remaining set can be spared (R18). If the
claimant does not fit with all units gone, nothing changes (R17).

The first trial covers all nodes and takes the smallest loss first. If it fails, small units are
tried first, then single nodes. If several units pay, other sets may be as fair and lose less, or
lose as much and affect fewer users. To find them, some units are exchanged for another one, and
single nodes are tried. The number of trials is bounded, whatever the size of the pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from benchpool_scheduler.core.capacity.free_capacity import NodeCapacity
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import NodeName
from benchpool_scheduler.core.preemption.candidates import VictimCandidates
from benchpool_scheduler.core.preemption.disturbance import Disturbance
from benchpool_scheduler.core.preemption.entitlement import Entitlement, Victim
from benchpool_scheduler.core.preemption.exchange import FEW, exchange
from benchpool_scheduler.core.preemption.payment import Payment
from benchpool_scheduler.core.preemption.victim_queue import VictimQueue

MOST_NODES_TRIED = 64
"""Limit on single nodes tried after a wider search failed."""

MOST_NODES_COMPARED = 8
"""Limit on single nodes compared when a wider search stops several jobs."""


class PreemptionAttempt:
    """Attempt of one job to get GPUs that other jobs hold.

    Attributes:
        payment: Units taken for it, set by the search. Most attempts end before it is set.
        delayed_until_s: When it may stop long-running jobs, if only the delay is in the way (R19).
    """

    payment: Payment

    def __init__(
        self, state: ClusterState, candidates: VictimCandidates, info: JobInfo, workers: int
    ) -> None:
        self.state = state
        self.candidates = candidates
        self.info = info
        self.workers = workers
        self.entitled = Entitlement(state, candidates, info, workers)
        self.delayed_until_s: float | None = None
        self._payable: dict[int, int] = {}

    @property
    def victims(self) -> list[Victim]:
        """Return the units taken so far."""
        return self.payment.victims

    def undo(self) -> None:
        """Return all taken units."""
        self.payment.undo()

    def search(self, *, best: bool = True, hint: NodeName | None = None) -> bool:
        """Take the needed units, or undo everything and return False if the claimant cannot fit.

        Args:
            best: Compare several sets. Otherwise take the first that suffices, for explanations.
            hint: Node to try first, used if the first set suffices.
        """
        wanted = self.entitled.wanted
        if self.state.ledger.over_guarantee(self.info, wanted, releasing=True) is not None:
            return False
        if not self.entitled.rightful() or not self.entitled.enough():
            return False
        self.payment = Payment(self.entitled, self.workers)
        patient = self.is_patient()
        if not self._makes_room(best=best, hint=hint):
            return False
        if best and 1 < len(self.victims) <= FEW:
            self._look_for_less()
        if patient and any(victim.unit.info.long for victim in self.victims):
            job = self.info.job
            self.delayed_until_s = job.as_of_s - job.waits_s + self.state.policy.claim_delay_s
            self.undo()
            return False
        return True

    def is_patient(self) -> bool:
        """Return whether it waits for free GPUs before it stops long-running jobs.

        Only an attempt beyond quota waits. An attempt within quota never does (R21).
        """
        waited_s = self.info.job.waited_at(self.candidates.now_s)
        return waited_s < self.state.policy.claim_delay_s and not self.entitled.in_quota()

    def _makes_room(self, *, best: bool, hint: NodeName | None) -> bool:
        pay = self.payment.pay
        if hint is not None and pay(VictimQueue(self.entitled, hint)):
            return True
        if not best:
            self._payable = self._could_pay()
            if self._pay_on_one_node(MOST_NODES_TRIED, best=False):
                return True
            if self._alone_on_a_node():
                return False
        queue = VictimQueue(self.entitled)
        self._payable = {index: self.entitled.most_from(index) for index in queue.projects}
        if pay(queue):
            return True
        if self._payable and pay(VictimQueue(self.entitled, smallest=True)):
            return True
        return best and (
            self._pay_on_one_node(MOST_NODES_TRIED, best=True)
            or self._pay_node_by_node()
            or self._pay_with_any_one()
        )

    def _could_pay(self) -> dict[int, int]:
        """Return the projects that may have to pay, each with its most GPUs, unordered."""
        entitled, found = self.entitled, dict[int, int]()
        for index in self.candidates.projects():
            unit = self.candidates.lowest(index)
            if unit is not None and entitled.lawful(unit) is not None:
                found[index] = entitled.most_from(index)
        return found

    # ------------------------------------------------------------------ alternative sets

    def _alone_on_a_node(self) -> bool:
        """Return whether it is a single worker with several GPUs, for which the node matters."""
        return (
            self.workers == 1
            and self.info.requirements.gpus > 1
            and len(self.state.capacity.nodes) > 1
        )

    def _look_for_less(self) -> None:
        """Check whether other units, or a single node, are a better set (R18)."""
        exchange(self.payment)
        if len(self.victims) > 1 and self._alone_on_a_node():
            self._compare_nodes()

    def _compare_nodes(self) -> None:
        """Let one node pay alone if that is as fair and disturbs less."""
        payment = self.payment
        so_far, cost = payment.victims, payment.disturbance
        ground, projects = payment.ground, payment.projects
        top = max(victim.unit.info.rank for victim in so_far)
        payment.undo()
        if self._pay_on_one_node(MOST_NODES_COMPARED, best=True):
            fair = payment.ground <= ground and payment.projects <= projects
            lower = max(victim.unit.info.rank for victim in self.victims) <= top
            if fair and lower and payment.disturbance < cost:
                return
        payment.repeat(so_far)

    def _pay_on_one_node(self, most: int, *, best: bool) -> bool:
        """Try single nodes. Keep the set with the best ground, then the least disturbance (R18)."""
        payment = self.payment
        found: tuple[tuple[int, Disturbance, int], NodeCapacity] | None = None
        for node in self._nodes_to_try(most):
            if self._pay_there(node):
                if not best:
                    return True
                key = (payment.ground, payment.disturbance, node.order)
                if found is None or key < found[0]:
                    found = key, node
                payment.undo()
        return found is not None and self._pay_there(found[1])

    def _pay_there(self, node: NodeCapacity) -> bool:
        """Let a node pay alone: the smallest loss first, else small units first, else one job."""
        where, pay = node.node.name, self.payment.pay
        return (
            pay(VictimQueue(self.entitled, where))
            or pay(VictimQueue(self.entitled, where, smallest=True))
            or self._pay_with_one(node)
        )

    def _pay_with_one(self, node: NodeCapacity) -> bool:
        """Let one job of a node pay alone, where smaller jobs would leave it within its due."""
        free = node.free_gpus(releasing=True)
        asked = self.info.requirements.gpus * self.workers
        jobs = [unit for unit in self.candidates.on_node(node.node.name) if unit.is_gang]
        for unit in sorted(jobs, key=self.candidates.order):
            here = sum(len(w.gpus) for w in unit.workers if w.node == node.node.name)
            if free + here >= asked and self._pays_alone(unit):
                return True
        return False

    def _pay_with_any_one(self) -> bool:
        """Let one job on any nodes pay alone, where other jobs would leave it within its due.

        Only within quota, where a job must pay if any can (R21).
        """
        if not self._payable or not self.entitled.in_quota():
            return False
        free = self.state.capacity.free(self.info.requirements, releasing=True) * WHOLE_GPU
        missing = self.entitled.wanted.gpus - free
        jobs = (unit for index in self._payable for unit in self.candidates.cheapest(index))
        able = (unit for unit in jobs if unit.amounts.gpus >= missing)
        return any(map(self._pays_alone, islice(able, MOST_NODES_COMPARED)))

    def _pays_alone(self, unit: PreemptionUnit) -> bool:
        """Take one job if that is allowed and suffices. Return whether it is taken."""
        payment = self.payment
        if (victim := self.entitled.lawful(unit)) is None:
            return False
        payment.take(victim)
        if payment.fits() and payment.comes_back() is None:
            return True
        payment.undo()
        return False

    def _pay_node_by_node(self) -> bool:
        """Clear one node after another, for a gang whose workers need several GPUs on a node each.

        Nodes with the smallest loss go first. Units that do not make a worker fit are returned.
        """
        payment, capacity, requirements = self.payment, self.state.capacity, self.info.requirements
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
            if payment.fits():
                break
            self._clear(node)
        if payment.fits():
            payment.reprieve(payment.victims[::-1])
            if payment.comes_back() is None:
                return True
        payment.undo()
        return False

    def _cost_of(self, node: NodeCapacity) -> tuple[float, int]:
        payable = self._payable
        here = [
            c for c in self.candidates.on_node(node.node.name) if c.info.branch.index in payable
        ]
        return sum(map(self.candidates.lost, here)), node.order

    def _clear(self, node: NodeCapacity) -> None:
        """Take units on a node while that makes more workers fit."""
        payment, queue = self.payment, VictimQueue(self.entitled, node.node.name)
        slots, useful = node.slots(self.info.requirements, releasing=True), len(payment.victims)
        before = self.state.changes.savepoint()
        while (victim := queue.next()) is not None:
            payment.take(victim)
            queue.taken(victim)
            if (now := node.slots(self.info.requirements, releasing=True)) > slots:
                slots, useful, before = now, len(payment.victims), self.state.changes.savepoint()
                if payment.fits():
                    break
        del payment.victims[useful:]
        self.state.changes.rollback(before)

    def _nodes_to_try(self, most: int) -> Iterator[NodeCapacity]:
        """Yield the nodes that could suffice alone, the freest first."""
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
        """Return the most GPUs that could be free on the node."""
        given = self.candidates.by_project(node.node.name)
        return node.free_gpus(releasing=True) + sum(
            min(gpus, self._payable[index])
            for index, gpus in given.items()
            if index in self._payable
        )
