"""How every project stands to its quota and fair share right now (R11, R15)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from benchpool_scheduler.core.fairness.ledger import QuotaLedger
from benchpool_scheduler.core.jobs.amounts import NOTHING, Amounts
from benchpool_scheduler.core.jobs.tree import Branch, Tree

INFINITE = float("inf")


class QueueUsage:
    """Compares what projects hold with what they deserve."""

    def __init__(self, tree: Tree, shares: Sequence[Amounts], total: Amounts, ledger: QuotaLedger):
        self.tree = tree
        self.shares = shares
        self.total = total
        self.ledger = ledger

    @cached_property
    def overbooked(self) -> bool:
        """Tell whether more GPUs are guaranteed to those who ask for them than there are."""
        return sum(self.shares[index].gpus for index in self.tree.tops) > self.total.gpus

    def within_share(self, index: int, extra: Amounts, *, beside: Amounts = NOTHING) -> bool:
        """Tell whether the project stays within its fair share with ``extra`` (R15).

        A resource of which nothing is asked does not matter; one without a bound never binds.

        Args:
            beside: What it holds and could give for that.
        """
        held, share = self.ledger.held[index], self.shares[index]
        if beside is not NOTHING:
            held = held - beside
        if extra[0] and held[0] + extra[0] > share[0]:
            return False
        if not extra[1] and not extra[2]:
            return True
        quota = self.tree.branches[index].quota
        return all(
            not extra[r] or quota[r] is None or held[r] + extra[r] <= share[r] for r in (1, 2)
        )

    def within_quota(self, index: int, extra: Amounts, *, beside: Amounts = NOTHING) -> bool:
        """Tell whether the project stays within its guaranteed quota with ``extra``.

        Args:
            beside: What it holds and could give for that.
        """
        quota, held = self.tree.branches[index].quota, self.ledger.held[index]
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
        """Tell whether the project stays within its guaranteed quota or its fair share.

        Args:
            beside: What it holds and could give for that.
        """
        return self.within_quota(index, extra, beside=beside) or self.within_share(
            index, extra, beside=beside
        )

    def first_over(self, index: int, extra: Amounts) -> int:
        """Return the first resource with which ``extra`` passes share and quota; GPUs else."""
        held, share = self.ledger.held[index], self.shares[index]
        quota = self.tree.branches[index].quota
        for r in range(3):
            bound = quota[r]
            over = held[r] + extra[r]
            if extra[r] and bound is not None and over > share[r] and over > bound:
                return r
        return 0

    def above_share(self, index: int, wanted: Amounts) -> bool:
        """Tell whether it is above its fair share in something that is wanted."""
        held, share = self.ledger.held[index], self.shares[index]
        if wanted[0] and held[0] > share[0]:
            return True
        if not wanted[1] and not wanted[2]:
            return False
        quota = self.tree.branches[index].quota
        return any(wanted[r] and held[r] > share[r] and quota[r] is not None for r in (1, 2))

    def above_quota(self, index: int, wanted: Amounts) -> bool:
        """Tell whether it is above its guaranteed quota in something that is wanted."""
        held, quota = self.ledger.held[index], self.tree.branches[index].quota
        if wanted[0] and quota[0] is not None and held[0] > quota[0]:
            return True
        if not wanted[1] and not wanted[2]:
            return False
        return any(
            wanted[r] and (bound := quota[r]) is not None and held[r] > bound for r in (1, 2)
        )

    def newly_above(self, path: Sequence[int], added: Amounts) -> bool:
        """Tell whether what was added took any project of a path above its share or quota."""
        for index in path:
            held, share = self.ledger.held[index].gpus, self.shares[index].gpus
            quota, before = self.tree.branches[index].quota[0], held - added.gpus
            if before <= share < held or (quota is not None and before <= quota < held):
                return True
        return False

    def is_above(self, path: Sequence[int]) -> bool:
        """Tell whether any project of a path holds more GPUs than its share or quota."""
        for index in path:
            held, quota = self.ledger.held[index].gpus, self.tree.branches[index].quota[0]
            if held > self.shares[index].gpus or (quota is not None and held > quota):
                return True
        return False

    def most_to_claim(self, index: int) -> float:
        """Return the most GPUs, in thousandths, with which it keeps within share or quota (R15)."""
        quota = self.tree.branches[index].quota[0]
        deserved = INFINITE if quota is None else max(quota, self.shares[index][0])
        return deserved - self.ledger.held[index][0]

    def dominant(self, index: int, extra: Amounts) -> float:
        """Return the largest part of its deserved that the project holds with ``extra``.

        Its deserved is the larger of quota and fair share, within its limit; holding anything where
        nothing is deserved is infinite.
        """
        branch, held = self.tree.branches[index], self.ledger.held[index]
        part = self._part(branch, 0, held[0] + extra[0])
        for resource in (1, 2):
            if amount := held[resource] + extra[resource]:
                part = max(part, self._part(branch, resource, amount))
        return part

    def _part(self, branch: Branch, resource: int, amount: int) -> float:
        quota, limit = branch.quota[resource], branch.limit[resource]
        if amount <= 0 or (quota is None and resource > 0):
            return 0.0
        deserved = max(
            self.total[resource] if quota is None else quota, self.shares[branch.index][resource]
        )
        if limit is not None:
            deserved = min(deserved, limit)
        return amount / deserved if deserved else INFINITE
