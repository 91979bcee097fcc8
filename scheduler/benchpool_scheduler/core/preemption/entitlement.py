"""Who may take what from whom, and who should pay first (R15, R16).

Whether a unit may be taken is asked before it is subtracted, with those already gone counted as
gone (R15). Between projects the two branches are compared below the point where they part:

- *by share*: the claimant's side stays within its fair share at every level, and the paying side
  is above its own at every level;
- *by quota*: the claimant's side stays within its guaranteed quota at every level, and the paying
  branch is above its quota.

By share nobody is taken who could come back by quota: R16 holds for all victims together.

Inside a project only lower job priority pays, and at equal priority, as long as the project is
above its quota, what has run long for what has not (``Policy.long_run_s``). A claimant that has run
long itself has only its quota to stand on.
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
"""On what ground a unit may be taken, in the order in which grounds are used."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A unit that is gone, and on what ground; ``level`` is where the two branches part."""

    unit: PreemptionUnit
    ground: int
    level: int


VictimOrder = tuple[object, ...]


class Entitlement:
    """What one job may claim for a number of workers.

    Attributes:
        left_out: What is not taken, though it might be.
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
        """Tell whether there is any ground at all; room of leaving jobs is claimed by it too."""
        depth = len(self.path) - 1
        return self.holds(BY_SHARE, depth) or self.holds(BY_QUOTA, depth) or self.own_gives()

    def own_gives(self) -> bool:
        """Tell whether the claimant's own project could give something that goes after it."""
        return self.candidates.gives_below(self.info, by_youth=self._over_quota())

    def in_quota(self) -> bool:
        """Tell whether the claimant keeps within the quotas at every level (R21)."""
        return self.holds(BY_QUOTA, 0)

    def _over_quota(self) -> bool:
        return self.usage.above_quota(self.path[-1], self.wanted)

    def holds(self, ground: int, level: int) -> bool:
        """Tell whether the claimant's side is entitled from a level of the tree downwards."""
        usage = self.usage
        if ground == BY_SHARE and self.info.long:
            return False
        within = usage.within_share if ground == BY_SHARE else usage.within_quota
        return ground == BY_PRIORITY or all(
            within(index, self.wanted) for index in self.path[level:]
        )

    def lawful(self, unit: PreemptionUnit) -> Victim | None:
        """Return the ground on which the unit may be taken now, if there is one (R15)."""
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
        """Tell whether a victim is work that is due, and goes for work that is not (R16).

        Asked when all victims are gone: projects give whole jobs, and so may have given more than
        what they held beyond their quota. What then fits into the quota, with no more than what
        does not go before it in its own project, would have the right to take its room back.

        A job that only grows gives way to what fits into the share as well. So does a job that
        takes its own project above quota and share, whatever its priority: a claim of another
        project would undo it, and the same would begin again.
        """
        usage, theirs, within = self.usage, victim.unit.info.branch.path, self.usage.within_due
        if victim.ground == BY_PRIORITY:
            if self._keeps_its_due():
                return False
        elif usage.within_quota(self.path[victim.level], self.wanted):
            if not usage.overbooked:
                return False
            theirs, within = theirs[victim.level :], usage.within_quota
        else:
            theirs = theirs[victim.level :]
            if not self.state.changes.workers_of(self.info):
                within = usage.within_quota
        asked, lower = victim.unit.amounts, self.candidates.held_below(victim.unit.info)
        return all(within(index, asked, beside=lower) for index in theirs)

    def _keeps_its_due(self) -> bool:
        """Tell whether the claimant's side stays within quota or share at every level."""
        return all(self.usage.within_due(index, self.wanted) for index in self.path)

    def order_of_victim(self, victim: Victim) -> VictimOrder:
        """Return by what projects are compared for paying; the smaller pays first.

        After the ground, the reverse of R11 at every level: above its share, above its quota,
        lower priority, larger part of what it deserves. On the claimant's own path what it wants is
        counted. Among those that are equal in all of it, who loses less (R18), then the younger.
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
        """Tell whether what could be given at most makes up for the GPUs that are missing.

        A bound, so that a hopeless attempt costs little: a branch gives while it is above its share
        or quota, so at most its surplus and what is left of one unit.
        """
        free = self.state.capacity.free(self.info.requirements, releasing=True) * WHOLE_GPU
        missing = self.wanted.gpus - free
        return missing <= 0 or self._most_given(self.state.tree.tops) >= missing

    def may_give(self, index: int) -> bool:
        """Tell whether a project could ever be made to pay by this attempt; a cheap bound."""
        if not self.state.tree.gpus_alone:
            return True
        apart = next((i for i in self.state.tree.branches[index].path if i not in self.path), None)
        return apart is None or self._surplus(apart) > 0

    def most_from(self, index: int) -> int:
        """Return how many whole GPUs a project gives at most."""
        apart = next((i for i in self.state.tree.branches[index].path if i not in self.path), None)
        if apart is None or not self.state.tree.gpus_alone:
            return self.wanted.gpus
        return (self._surplus(apart) + self.candidates.overshoot) // WHOLE_GPU

    def _most_given(self, siblings: Sequence[int]) -> int:
        """Return what the projects beside the claimant's path give at most, and its own."""
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
        """Return by how much a branch is above its share or its quota, whichever is less."""
        quota = self.usage.guarantees[index][0]
        share = self.usage.shares[index].gpus
        due = share if quota is None else min(share, quota)
        return max(0, self.state.ledger.held[index].gpus - due)
