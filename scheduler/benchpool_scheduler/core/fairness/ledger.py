"""Who holds what, and the gates that bound it (R8).

Two views are kept apart. What a project *holds* counts for its share and its turn; what jobs that
are already leaving still occupy comes on top where a start must not wait for them.
"""

from __future__ import annotations

from benchpool_scheduler.core.jobs.amounts import NOTHING, Amounts, first_over
from benchpool_scheduler.core.jobs.job_info import Work
from benchpool_scheduler.core.jobs.tree import Tree


class Ledger:
    """Amounts by project age, for every project and its ancestors.

    Attributes:
        held: Of jobs that run, or were chosen to start in this pass.
        leaving: Of jobs that are giving up their workers.
        firm: The part of ``held`` that non-preemptible jobs hold; ``leaving_firm`` of ``leaving``.
        by_user: Thousandths of a GPU that each user holds in a project.
        demands: Held plus asked for, of each project that holds jobs (R6); ``young`` without that
            of long-running jobs.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        size = len(tree.branches)
        self.held = [NOTHING] * size
        self.leaving = [NOTHING] * size
        self.firm = [NOTHING] * size
        self.leaving_firm = [NOTHING] * size
        self.by_user: dict[tuple[int, str], int] = {}
        self.demands = [NOTHING] * size
        self.young = [NOTHING] * size

    def add(self, work: Work, amounts: Amounts) -> None:
        """Book amounts that the job now holds."""
        held, branch = self.held, work.branch
        for index in branch.path:
            held[index] = held[index] + amounts
        if not work.job.preemptible:
            for index in branch.path:
                self.firm[index] = self.firm[index] + amounts
        turn = (branch.index, work.user)
        self.by_user[turn] = self.by_user.get(turn, 0) + amounts.gpus

    def remove(self, work: Work, amounts: Amounts) -> None:
        """Take back what ``add`` booked."""
        self.add(work, NOTHING - amounts)

    def let_go(self, work: Work, amounts: Amounts) -> None:
        """Book amounts that the job is giving up."""
        self.remove(work, amounts)
        self.leave(work, amounts)

    def hold_again(self, work: Work, amounts: Amounts) -> None:
        """Take back ``let_go``."""
        self.add(work, amounts)
        self.leave(work, NOTHING - amounts)

    def leave(self, work: Work, amounts: Amounts) -> None:
        """Book amounts that the job occupies until it is gone."""
        for index in work.branch.path:
            self.leaving[index] += amounts
            if not work.job.preemptible:
                self.leaving_firm[index] += amounts

    def ask(self, work: Work, amounts: Amounts) -> None:
        """Book what the job holds and asks for in all."""
        index = work.branch.index
        self.demands[index] = self.demands[index] + amounts
        if not work.long:
            self.young[index] = self.young[index] + amounts

    def over_limit(self, work: Work, amounts: Amounts, *, soon: bool) -> tuple[int, int] | None:
        """Return project and resource whose limit the amounts would pass, the lowest level first.

        Args:
            soon: Count what is leaving as gone.
        """
        for index in work.branch.limited:
            after = self.held[index] + amounts
            if not soon:
                after += self.leaving[index]
            if (over := first_over(after, self.tree.branches[index].limit)) is not None:
                return index, over
        return None

    def over_guarantee(self, work: Work, amounts: Amounts, *, soon: bool) -> tuple[int, int] | None:
        """Return project and resource whose quota a non-preemptible job would pass (R8).

        Args:
            soon: Count what is leaving as gone.
        """
        if work.job.preemptible:
            return None
        for index in reversed(work.branch.path):
            after = self.firm[index] + amounts
            if not soon:
                after += self.leaving_firm[index]
            if (over := first_over(after, self.tree.branches[index].quota)) is not None:
                return index, over
        return None

    def bound(self, work: Work, amounts: Amounts, *, soon: bool) -> tuple[int, int] | None:
        """Return project and resource of the limit or quota that the amounts would pass (R8)."""
        return self.over_limit(work, amounts, soon=soon) or self.over_guarantee(
            work, amounts, soon=soon
        )
