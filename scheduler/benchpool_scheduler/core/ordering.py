"""Whose turn it is (R11): the next job between projects, and inside one.

Siblings are compared at each level of the tree, departments before their projects, always with
the job that each would start next. A start changes what its project holds, so the order moves
within a pass. Keys are remembered until the holdings on their path change.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from benchpool_scheduler.core.amounts import Amounts
from benchpool_scheduler.core.ledger import Ledger
from benchpool_scheduler.core.tree import Branch, Tree
from benchpool_scheduler.core.works import Work

Waiter = tuple[Work, int]
"""A waiting job and how many workers it has; more than none when it could grow."""

Turn = tuple[bool, bool, int, float, int, float, int]


class Standing:
    """How every project stands to its quota and fair share right now."""

    def __init__(self, tree: Tree, shares: Sequence[Amounts], total: Amounts, ledger: Ledger):
        self.tree = tree
        self.shares = shares
        self.total = total
        self.ledger = ledger

    def within_share(self, index: int, extra: Amounts) -> bool:
        """Tell whether the project stays within its fair share with ``extra`` (R15).

        A resource of which nothing is asked does not matter; one without a bound never binds.
        """
        after = self.ledger.held[index] + extra
        quota = self.tree.branches[index].quota
        return all(
            not extra[r] or (r > 0 and quota[r] is None) or after[r] <= self.shares[index][r]
            for r in range(3)
        )

    def within_quota(self, index: int, extra: Amounts) -> bool:
        """Tell whether the project stays within its guaranteed quota with ``extra``."""
        quota = self.tree.branches[index].quota
        after = self.ledger.held[index] + extra
        return all(
            not extra[r] or (bound := quota[r]) is None or after[r] <= bound for r in range(3)
        )

    def above_share(self, index: int, wanted: Amounts) -> bool:
        """Tell whether it is above its fair share in something that is wanted."""
        held, share = self.ledger.held[index], self.shares[index]
        quota = self.tree.branches[index].quota
        return any(
            wanted[r] and held[r] > share[r] and (r == 0 or quota[r] is not None) for r in range(3)
        )

    def above_quota(self, index: int, wanted: Amounts) -> bool:
        """Tell whether it is above its guaranteed quota in something that is wanted."""
        held, quota = self.ledger.held[index], self.tree.branches[index].quota
        return any(
            wanted[r] and (bound := quota[r]) is not None and held[r] > bound for r in range(3)
        )

    def dominant(self, index: int, extra: Amounts) -> float:
        """Return the largest part of its due that the project holds with ``extra``.

        Its due is the larger of quota and fair share, within its limit; holding anything where
        nothing is due is infinite.
        """
        branch = self.tree.branches[index]
        after = self.ledger.held[index] + extra
        return max(self._part(branch, r, after[r]) for r in range(3))

    def _part(self, branch: Branch, resource: int, amount: int) -> float:
        quota, limit = branch.quota[resource], branch.limit[resource]
        if quota is None and resource > 0:
            return 0.0
        due = max(
            self.total[resource] if quota is None else quota, self.shares[branch.index][resource]
        )
        if limit is not None:
            due = min(due, limit)
        if amount <= 0:
            return 0.0
        return amount / due if due else float("inf")


PastUse = Mapping[tuple[int, str], float]
"""Decayed past use by project age and user (R7)."""


class Turns:
    """The waiting jobs of a pass, in the order of R11."""

    def __init__(self, standing: Standing, past: PastUse) -> None:
        self.standing = standing
        self.tree = standing.tree
        self.past = past
        self.queues: dict[int, ProjectQueue] = {}
        self._next: dict[int, tuple[Turn, Waiter] | None] = {}

    def put(self, work: Work, workers: int = 0) -> None:
        """Let a job wait; ``workers`` is how many it already has."""
        index = work.branch.index
        if index not in self.queues:
            self.queues[index] = ProjectQueue(self.standing.ledger, self.past)
        self.queues[index].put(work, workers)
        self.changed(work.branch)

    def changed(self, branch: Branch) -> None:
        """The project's holdings or waiting jobs have changed."""
        for index in branch.path:
            self._next.pop(index, None)

    def take(self) -> Waiter | None:
        """Remove and return the next job, and how many workers it has; None at the end."""
        waiter = self._first(self.tree.tops)
        if waiter is not None:
            branch = waiter[0].branch
            self.queues[branch.index].pop()
            self.changed(branch)
        return waiter

    def _first(self, siblings: Sequence[int]) -> Waiter | None:
        found = [entry for index in siblings if (entry := self._best(index))]
        return min(found, key=lambda entry: entry[0])[1] if found else None

    def _best(self, index: int) -> tuple[Turn, Waiter] | None:
        if index not in self._next:
            waiter = self._representative(index)
            turn = None if waiter is None else (self._turn(index, waiter), waiter)
            self._next[index] = turn
        return self._next[index]

    def _representative(self, index: int) -> Waiter | None:
        if children := self.tree.branches[index].children:
            return self._first(children)
        queue = self.queues.get(index)
        return None if queue is None else queue.head()

    def _turn(self, index: int, waiter: Waiter) -> Turn:
        """Return what siblings are compared by; the smaller goes first (R11)."""
        work, workers = waiter
        branch, standing = self.tree.branches[index], self.standing
        extra = work.need if workers else work.core
        lead = next((r for r in range(3) if extra[r]), 0)
        held = standing.ledger.held[index]
        return (
            held[lead] >= standing.shares[index][lead],
            not standing.within_quota(index, extra),
            -branch.priority,
            standing.dominant(index, extra),
            held[lead] + extra[lead],
            branch.used_gpu_s,
            branch.index,
        )


Tier = tuple[int, bool]
"""Priority, highest first, and whether these are growths of jobs that already run."""


class ProjectQueue:
    """The waiting jobs of one project: priority, then whose turn it is (R7), then age.

    Jobs that wait for their first worker go before those that could grow.
    """

    def __init__(self, ledger: Ledger, past: PastUse) -> None:
        self.ledger = ledger
        self.past = past
        self._tiers: dict[Tier, dict[str, list[tuple[int, int, Work]]]] = {}

    def put(self, work: Work, workers: int) -> None:
        """Add a job."""
        tier = self._tiers.setdefault((-work.job.priority, workers > 0), {})
        heapq.heappush(tier.setdefault(work.user, []), (workers, work.age, work))

    def head(self) -> Waiter | None:
        """Return the next job and its workers, or None."""
        place = self._place()
        if place is None:
            return None
        workers, _, work = self._tiers[place[0]][place[1]][0]
        return work, workers

    def pop(self) -> None:
        """Remove the head."""
        place = self._place()
        if place is None:
            raise IndexError("no job waits in this project")
        tier, user = place
        heapq.heappop(self._tiers[tier][user])
        if not self._tiers[tier][user]:
            del self._tiers[tier][user]
        if not self._tiers[tier]:
            del self._tiers[tier]

    def _place(self) -> tuple[Tier, str] | None:
        if not self._tiers:
            return None
        tier = min(self._tiers)
        return tier, min(self._tiers[tier], key=lambda user: self._turn_of(tier, user))

    def _turn_of(self, tier: Tier, user: str) -> tuple[int, float, int, int]:
        workers, age, work = self._tiers[tier][user][0]
        turn = (work.branch.index, user)
        return self.ledger.by_user.get(turn, 0), self.past.get(turn, 0.0), workers, age
