"""Who holds what, and the gates that bound it (R8).

Two views are kept apart. What a project *holds* counts for its share and its turn; what jobs that
are already leaving still occupy comes on top where a start must not wait for them.
"""

from __future__ import annotations

from benchpool_scheduler.core.jobs.amounts import NOTHING, Amounts, first_over
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.jobs.tree import Tree


class QuotaLedger:
    """Amounts by project age, for every project and its ancestors.

    Attributes:
        held: Of jobs that run, or were chosen to start in this pass.
        releasing: Of jobs that are giving up their workers.
        firm: The part of ``held`` that non-preemptible jobs hold.
        releasing_firm: The same of ``releasing``.
        by_user: Thousandths of a GPU that each user holds in a project.
        demands: Held plus asked for, of each project that holds jobs (R6); ``young`` without that
            of long-running jobs.
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
        """Book amounts that the job now holds; negative ones it holds no more."""
        held, branch = self.held, info.branch
        for index in branch.path:
            held[index] = held[index] + amounts
        if not info.spec.preemptible:
            for index in branch.path:
                self.firm[index] = self.firm[index] + amounts
        turn = (branch.index, info.user)
        self.by_user[turn] = self.by_user.get(turn, 0) + amounts.gpus

    def release(self, info: JobInfo, amounts: Amounts) -> None:
        """Book amounts that the job is giving up; negative ones it holds again."""
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
        """Book amounts that the job occupies until it is gone."""
        for index in info.branch.path:
            self.releasing[index] += amounts
            if not info.spec.preemptible:
                self.releasing_firm[index] += amounts

    def ask(self, info: JobInfo, amounts: Amounts) -> None:
        """Book what the job holds and asks for in all."""
        index = info.branch.index
        self.demands[index] = self.demands[index] + amounts
        if not info.long:
            self.young[index] = self.young[index] + amounts

    def over_limit(
        self, info: JobInfo, amounts: Amounts, *, releasing: bool
    ) -> tuple[int, int] | None:
        """Return project and resource whose limit the amounts would pass, the lowest level first.

        Args:
            releasing: Count what is leaving as gone.
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
        """Return project and resource whose quota a non-preemptible job would pass (R8).

        Args:
            releasing: Count what is leaving as gone.
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
        """Return project and resource of the limit or quota that the amounts would pass (R8)."""
        return self.over_limit(info, amounts, releasing=releasing) or self.over_guarantee(
            info, amounts, releasing=releasing
        )
