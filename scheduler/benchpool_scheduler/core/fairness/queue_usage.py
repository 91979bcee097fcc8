"""Use of every project compared with its quota and fair share (R11, R15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from benchpool_scheduler.core.fairness.ledger import QuotaLedger
from benchpool_scheduler.core.fairness.shares import Deserved
from benchpool_scheduler.core.jobs.amounts import NOTHING, WHOLE_GPU, Amounts
from benchpool_scheduler.core.jobs.tree import Branch, Tree
from benchpool_scheduler.core.model import ProjectName

INFINITE = float("inf")

POOL = -1
"""Stands for the pool where an index of a project is expected."""


class QueueUsage:
    """Compares what projects hold with their quotas and fair shares.

    A project's *quota* here is its whole guarantee, with its part of its parent's guarantee (R5a).
    """

    def __init__(self, tree: Tree, deserved: Deserved, total: Amounts, ledger: QuotaLedger):
        self.tree = tree
        self.shares = deserved.shares
        self.guarantees = deserved.guarantees
        self.total = total
        self.ledger = ledger

    @cached_property
    def in_gpus(self) -> list[tuple[ProjectName, int | None, int | None, int]]:
        """Return name, quota, guarantee and fair share of every project, in whole GPUs."""
        return [
            (
                branch.name,
                _whole(branch.quota[0]),
                _whole(self.guarantees[branch.index][0]),
                self.shares[branch.index].gpus // WHOLE_GPU,
            )
            for branch in self.tree.branches
        ]

    def overbooked(self, above: Sequence[int]) -> bool:
        """Return whether guarantees exceed the GPUs of the pool or of these projects.

        Args:
            above: Projects from the top down, as in a path.
        """
        return POOL in self._overbooked or any(index in self._overbooked for index in above)

    @cached_property
    def _overbooked(self) -> frozenset[int]:
        """Projects whose children deserve more GPUs together than they do, and ``POOL``."""
        below = Counter[int]()
        for branch in self.tree.branches:
            parent = branch.path[-2] if len(branch.path) > 1 else POOL
            below[parent] += self.shares[branch.index].gpus
        pool = self.total.gpus
        return frozenset(
            index
            for index, gpus in below.items()
            if gpus > (pool if index == POOL else self.shares[index].gpus)
        )

    def within_share(self, index: int, extra: Amounts, *, beside: Amounts = NOTHING) -> bool:
        """Return whether the project stays within its fair share with ``extra`` (R15).

        A resource of which ``extra`` has nothing is ignored. A resource without a bound never
        binds.

        Args:
            beside: Held amounts that the project could give up for it.
        """
        held, share = self.ledger.held[index], self.shares[index]
        if beside is not NOTHING:
            held = held - beside
        if extra[0] and held[0] + extra[0] > share[0]:
            return False
        if not extra[1] and not extra[2]:
            return True
        quota = self.guarantees[index]
        return all(
            not extra[r] or quota[r] is None or held[r] + extra[r] <= share[r] for r in (1, 2)
        )

    def within_quota(self, index: int, extra: Amounts, *, beside: Amounts = NOTHING) -> bool:
        """Return whether the project stays within its guaranteed quota with ``extra``.

        Args:
            beside: Held amounts that the project could give up for it.
        """
        quota, held = self.guarantees[index], self.ledger.held[index]
        if beside is not NOTHING:
            held = held - beside
        if extra[0] and quota[0] is not None and held[0] + extra[0] > quota[0]:
            return False
        if not extra[1] and not extra[2]:
            return True
        return all(
            not extra[r] or (bound := quota[r]) is None or held[r] + extra[r] <= bound
            for r in (1, 2)
        )

    def within_due(self, index: int, extra: Amounts, *, beside: Amounts = NOTHING) -> bool:
        """Return whether the project stays within its guaranteed quota or its fair share.

        Args:
            beside: Held amounts that the project could give up for it.
        """
        return self.within_quota(index, extra, beside=beside) or self.within_share(
            index, extra, beside=beside
        )

    def beyond_due(self, index: int, apart_from: int | None) -> Amounts:
        """Return the GPUs that children of a project hold beyond their quota and fair share.

        Args:
            index: The parent.
            apart_from: A child that is left out.
        """
        held, deserved, total = self.ledger.held, self.shares, 0
        for child in self.tree.branches[index].children:
            quota = self.guarantees[child][0]
            if child != apart_from and quota is not None:
                total += max(0, held[child].gpus - max(quota, deserved[child].gpus))
        return Amounts(total, 0, 0) if total else NOTHING

    def first_over(self, index: int, extra: Amounts) -> int:
        """Return the first resource with which ``extra`` exceeds share and quota, or 0 (GPUs)."""
        held, share = self.ledger.held[index], self.shares[index]
        quota = self.guarantees[index]
        for r in range(3):
            bound = quota[r]
            over = held[r] + extra[r]
            if extra[r] and bound is not None and over > share[r] and over > bound:
                return r
        return 0

    def above_share(self, index: int, wanted: Amounts) -> bool:
        """Return whether the project is above its fair share in a wanted resource."""
        held, share = self.ledger.held[index], self.shares[index]
        if wanted[0] and held[0] > share[0]:
            return True
        if not wanted[1] and not wanted[2]:
            return False
        quota = self.guarantees[index]
        return any(wanted[r] and held[r] > share[r] and quota[r] is not None for r in (1, 2))

    def above_quota(self, index: int, wanted: Amounts) -> bool:
        """Return whether the project is above its guaranteed quota in a wanted resource."""
        held, quota = self.ledger.held[index], self.guarantees[index]
        if wanted[0] and quota[0] is not None and held[0] > quota[0]:
            return True
        if not wanted[1] and not wanted[2]:
            return False
        return any(
            wanted[r] and (bound := quota[r]) is not None and held[r] > bound for r in (1, 2)
        )

    def newly_above(self, path: Sequence[int], added: Amounts) -> bool:
        """Return whether ``added`` took any project of a path above its share or quota."""
        for index in path:
            held, share = self.ledger.held[index].gpus, self.shares[index].gpus
            quota, before = self.guarantees[index][0], held - added.gpus
            if before <= share < held or (quota is not None and before <= quota < held):
                return True
        return False

    def is_above(self, path: Sequence[int]) -> bool:
        """Return whether any project of a path holds more GPUs than its share or quota."""
        for index in path:
            held, quota = self.ledger.held[index].gpus, self.guarantees[index][0]
            if held > self.shares[index].gpus or (quota is not None and held > quota):
                return True
        return False

    def most_to_claim(self, index: int) -> float:
        """Return the most GPUs, in thousandths, that stay within share or quota (R15)."""
        quota = self.guarantees[index][0]
        deserved = INFINITE if quota is None else max(quota, self.shares[index][0])
        return deserved - self.ledger.held[index][0]

    def room_below(self, path: Sequence[int]) -> int:
        """Return how much a project may claim within shares or within quotas at every level.

        The unit is thousandths of a GPU. The result is negative if the project holds more (R15). An
        unlimited quota counts as the whole pool.
        """
        held = self.ledger.held
        by_share = min(self.shares[index].gpus - held[index].gpus for index in path)
        quotas = ((index, self.guarantees[index][0]) for index in path)
        by_quota = min(
            (self.total.gpus if quota is None else quota) - held[index].gpus
            for index, quota in quotas
        )
        return max(by_share, by_quota)

    def dominant(self, index: int, extra: Amounts) -> float:
        """Return the dominant share of the project with ``extra``.

        This is its largest part of an amount due. The amount due is the larger of quota and fair
        share, within the limit. If nothing is due, holding anything gives infinity.
        """
        branch, held = self.tree.branches[index], self.ledger.held[index]
        part = self._part(branch, 0, held[0] + extra[0])
        for resource in (1, 2):
            if amount := held[resource] + extra[resource]:
                part = max(part, self._part(branch, resource, amount))
        return part

    def _part(self, branch: Branch, resource: int, amount: int) -> float:
        quota, limit = self.guarantees[branch.index][resource], branch.limit[resource]
        if amount <= 0 or (quota is None and resource > 0):
            return 0.0
        deserved = max(
            self.total[resource] if quota is None else quota, self.shares[branch.index][resource]
        )
        if limit is not None:
            deserved = min(deserved, limit)
        return amount / deserved if deserved else INFINITE


def _whole(thousandths: int | None) -> int | None:
    return None if thousandths is None else thousandths // WHOLE_GPU
