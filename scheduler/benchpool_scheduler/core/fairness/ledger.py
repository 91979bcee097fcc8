"""Holdings of projects, and the limits on them (R8).

Two amounts are kept apart. The amounts that a project *holds* count for its share and its order.
The amounts that leaving jobs still occupy are added where a start must not wait for them.
"""

from __future__ import annotations

from benchpool_scheduler.core.jobs.amounts import NOTHING, Amounts, first_over
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.jobs.tree import Tree


class QuotaLedger:
    """Amounts by project age, for every project and its ancestors.

    Attributes:
        held: Amounts of jobs that run, or were chosen to start in this pass.
        releasing: Amounts of jobs that are leaving their workers.
        firm: Part of ``held`` that non-preemptible jobs hold.
        releasing_firm: Part of ``releasing`` that non-preemptible jobs occupy.
        by_user: Thousandths of a GPU that each user holds in a project.
        demands: Held plus requested amounts of each project that holds jobs (R6).
        young: The same without long-running jobs.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        size = len(tree.branches)
        self.held = [NOTHING] * size
        self.releasing = [NOTHING] * size
        self.firm = [NOTHING] * size
        self.releasing_firm = [NOTHING] * size
        self.by_user: dict[tuple[int, str], int] = {}
        self.demands = [NOTHING] * size
        self.young = [NOTHING] * size

    def add(self, info: JobInfo, amounts: Amounts) -> None:
        """Add amounts that the job now holds. Negative amounts are subtracted."""
        held, branch = self.held, info.branch
        for index in branch.path:
            held[index] = held[index] + amounts
        if not info.spec.preemptible:
            for index in branch.path:
                self.firm[index] = self.firm[index] + amounts
        turn = (branch.index, info.user)
        self.by_user[turn] = self.by_user.get(turn, 0) + amounts.gpus

    def release(self, info: JobInfo, amounts: Amounts) -> None:
        """Move amounts from held to releasing. Negative amounts move back."""
        held, releasing, path = self.held, self.releasing, info.branch.path
        for index in path:
            held[index] = held[index] - amounts
            releasing[index] = releasing[index] + amounts
        if not info.job.spec.preemptible:
            for index in path:
                self.firm[index] = self.firm[index] - amounts
                self.releasing_firm[index] = self.releasing_firm[index] + amounts
        turn = (path[-1], info.user)
        self.by_user[turn] = self.by_user.get(turn, 0) - amounts.gpus

    def leave(self, info: JobInfo, amounts: Amounts) -> None:
        """Add amounts that a leaving job occupies until it is gone."""
        for index in info.branch.path:
            self.releasing[index] += amounts
            if not info.spec.preemptible:
                self.releasing_firm[index] += amounts

    def ask(self, info: JobInfo, amounts: Amounts) -> None:
        """Add the total amounts that the job holds and requests to the demand."""
        index = info.branch.index
        self.demands[index] = self.demands[index] + amounts
        if not info.long:
            self.young[index] = self.young[index] + amounts

    def over_limit(
        self, info: JobInfo, amounts: Amounts, *, releasing: bool
    ) -> tuple[int, int] | None:
        """Return the lowest project and the resource whose limit the amounts exceed, or None.

        Args:
            releasing: Count leaving amounts as gone.
        """
        for index in info.branch.limited:
            after = self.held[index] + amounts
            if not releasing:
                after += self.releasing[index]
            if (over := first_over(after, self.tree.branches[index].limit)) is not None:
                return index, over
        return None

    def over_guarantee(
        self, info: JobInfo, amounts: Amounts, *, releasing: bool
    ) -> tuple[int, int] | None:
        """Return the lowest project and the resource whose quota the amounts exceed, or None (R8).

        Only a non-preemptible job must stay within the quota.

        Args:
            releasing: Count leaving amounts as gone.
        """
        if info.spec.preemptible:
            return None
        for index in reversed(info.branch.path):
            after = self.firm[index] + amounts
            if not releasing:
                after += self.releasing_firm[index]
            if (over := first_over(after, self.tree.branches[index].firm_quota)) is not None:
                return index, over
        return None

    def bound(self, info: JobInfo, amounts: Amounts, *, releasing: bool) -> tuple[int, int] | None:
        """Return project and resource of the limit or quota that is exceeded, or None (R8)."""
        return self.over_limit(info, amounts, releasing=releasing) or self.over_guarantee(
            info, amounts, releasing=releasing
        )
