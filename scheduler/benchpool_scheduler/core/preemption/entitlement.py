"""Entitlement: which units a claimant may take, and which project pays first (R15, R16).

Each unit is checked before it is subtracted, with the units already taken counted as gone (R15).
Between projects, the two branches are compared below their lowest common ancestor:

- *by share*: the claimant's side stays within its fair share at every level, and the paying side
  is above its own at every level;
- *by quota*: the claimant's side stays within its guaranteed quota at every level, and the paying
  branch is above its quota.

By share, no unit is taken that could return by quota: R16 holds for all victims together.

Inside a project only jobs of lower priority pay. At equal priority, while the project is above its
quota, long-running jobs pay for younger ones (``Policy.long_run_s``). A long-running claimant may
claim only by quota.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.preemption_units import PreemptionUnit, goes_after
from benchpool_scheduler.core.jobs.amounts import NOTHING, WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.preemption.candidates import VictimCandidates

BY_SHARE, BY_QUOTA, BY_PRIORITY = range(3)
"""Grounds on which a unit may be taken, in the order in which they are used."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A taken unit, and its ground. ``level`` is where the two branches part."""

    unit: PreemptionUnit
    ground: int
    level: int


VictimOrder = tuple[object, ...]


class Entitlement:
    """Entitlement of one job to a number of workers.

    Attributes:
        left_out: Units that are not taken, although they could be.
    """

    def __init__(
        self, state: ClusterState, candidates: VictimCandidates, info: JobInfo, workers: int
    ) -> None:
        self.state = state
        self.usage = state.usage
        self.candidates = candidates
        self.info = info
        self.wanted = info.request.times(workers)
        self.path = info.branch.path
        self.left_out: frozenset[PreemptionUnit] = frozenset()

    def rightful(self) -> bool:
        """Return whether any ground exists. Releasing GPUs are claimed by it too."""
        depth = len(self.path) - 1
        return self.holds(BY_SHARE, depth) or self.holds(BY_QUOTA, depth) or self.own_gives()

    def own_gives(self) -> bool:
        """Return whether the claimant's own project has units that rank below it."""
        return self.candidates.gives_below(self.info, by_youth=self._over_quota())

    def in_quota(self) -> bool:
        """Return whether the claimant stays within the quotas at every level (R21)."""
        return self.holds(BY_QUOTA, 0)

    def _over_quota(self) -> bool:
        return self.usage.above_quota(self.path[-1], self.wanted)

    def holds(self, ground: int, level: int) -> bool:
        """Return whether the claimant's side is entitled, from a level of the tree downwards."""
        usage = self.usage
        if ground == BY_SHARE and self.info.long:
            return False
        within = usage.within_share if ground == BY_SHARE else usage.within_quota
        return ground == BY_PRIORITY or all(
            within(index, self.wanted) for index in self.path[level:]
        )

    def lawful(self, unit: PreemptionUnit) -> Victim | None:
        """Return the unit as a victim with its ground, or None if it may not be taken now (R15)."""
        mine, theirs = self.path, unit.info.branch.path
        if mine == theirs:
            lower = goes_after(unit.info, self.info, by_youth=self._over_quota())
            return Victim(unit, BY_PRIORITY, len(mine)) if lower else None
        level = next(i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b)
        usage, wanted = self.usage, self.wanted
        if all(usage.above_share(i, wanted) for i in theirs[level:]) and self.holds(
            BY_SHARE, level
        ):
            return Victim(unit, BY_SHARE, level)
        if usage.above_quota(theirs[level], wanted) and self.holds(BY_QUOTA, level):
            return Victim(unit, BY_QUOTA, level)
        return None

    def comes_back(self, victim: Victim) -> bool:
        """Return whether a victim is due work that could reclaim its GPUs at once (R16, R20).

        This is checked when all victims are gone. Projects give whole jobs, so that they may have
        given more than they held beyond their due. Not counted is what the victim could reclaim:
        jobs of lower priority in its own project, and what its siblings hold beyond their due.

        - A claim within quota must be met: no victim counts. If the guarantees are overbooked, or
          the claimant only grows, victims that fit into their quota count.
        - For another claim, victims that fit into their quota count. If the claimant only grows,
          those that fit into the share count too.
        - Inside a project, both count if the claimant takes it above quota and share.
        """
        usage, theirs, within = self.usage, victim.unit.info.branch.path, self.usage.within_due
        level, grows = victim.level, self.state.changes.workers_of(self.info) > 0
        if victim.ground == BY_PRIORITY:
            if self._keeps_its_due():
                return False
        else:
            theirs = theirs[level:]
            by_quota = usage.within_quota(self.path[level], self.wanted)
            if by_quota and not grows and not usage.overbooked(self.path[:level]):
                return False
            if by_quota or not grows:
                within = usage.within_quota
        asked, beside = victim.unit.amounts, self.candidates.held_below(victim.unit.info)
        below: int | None = None
        for index in reversed(theirs):
            beside += usage.beyond_due(index, below)
            if not within(index, asked, beside=beside):
                return False
            below = index
        return True

    def _keeps_its_due(self) -> bool:
        """Return whether the claimant's side stays within quota or share at every level."""
        return all(self.usage.within_due(index, self.wanted) for index in self.path)

    def order_of_victim(self, victim: Victim) -> VictimOrder:
        """Return the sort key of projects for paying. The smallest key pays first.

        After the ground it is the reverse of R11 at every level: above its share, above its quota,
        lower priority, larger dominant share. On the claimant's own path its request is included.
        On a tie the smaller loss pays first (R18), then the younger project.
        """
        usage, tree, wanted = self.usage, self.state.tree, self.wanted
        path = victim.unit.info.branch.path
        levels = tuple(
            (
                not usage.above_share(i, wanted),
                not usage.above_quota(i, wanted),
                tree.branches[i].priority,
                -usage.dominant(i, wanted if i in self.path else NOTHING),
            )
            for i in path
        )
        ages = tuple(-i for i in path)
        return victim.ground, levels, self.candidates.lost(victim.unit), ages

    # ------------------------------------------------------------------ bounds

    def enough(self) -> bool:
        """Return whether the most that projects could give covers the missing GPUs.

        This bound makes hopeless attempts cheap. A branch gives while it is above its share or
        quota, so at most its surplus and the rest of one unit.
        """
        free = self.state.capacity.free(self.info.requirements, releasing=True) * WHOLE_GPU
        missing = self.wanted.gpus - free
        return missing <= 0 or self._most_given(self.state.tree.tops) >= missing

    def may_give(self, index: int) -> bool:
        """Return whether a project could ever pay for this attempt. This is a cheap bound."""
        if not self.state.tree.gpus_alone:
            return True
        apart = next((i for i in self.state.tree.branches[index].path if i not in self.path), None)
        return apart is None or self._surplus(apart) > 0

    def most_from(self, index: int) -> int:
        """Return the most whole GPUs that a project gives."""
        apart = next((i for i in self.state.tree.branches[index].path if i not in self.path), None)
        if apart is None or not self.state.tree.gpus_alone:
            return self.wanted.gpus
        return (self._surplus(apart) + self.candidates.overshoot) // WHOLE_GPU

    def _most_given(self, siblings: Sequence[int]) -> int:
        """Return the most that projects beside the claimant's path and its own project give."""
        tree = self.state.tree
        total = 0
        for index in siblings:
            if index == self.path[-1]:
                by_youth = not self.info.long and self._over_quota()
                total += self.candidates.most(index, below=self.info.spec.priority + by_youth)
            elif index in self.path:
                total += self._most_given(tree.branches[index].children)
            elif not tree.gpus_alone:
                total += self._most_below(index)
            elif surplus := self._surplus(index):
                total += min(self._most_below(index), surplus + self.candidates.overshoot)
        return total

    def _most_below(self, index: int) -> int:
        children = self.state.tree.branches[index].children
        return sum(map(self._most_below, children)) if children else self.candidates.most(index)

    def _surplus(self, index: int) -> int:
        """Return by how much a branch is above its share or its quota, whichever is lower."""
        quota = self.usage.guarantees[index][0]
        share = self.usage.shares[index].gpus
        due = share if quota is None else min(share, quota)
        return max(0, self.state.ledger.held[index].gpus - due)
