"""Budgets of GPU-hours in virtual time, for replays and estimates.

The rule is that of the service (``fairness.hour_standing``). Here the hours are counted on a clock
of its own, as jobs start and end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.fairness.gpu_hours import MonthUse
from benchpool_scheduler.core.fairness.hour_meter import HourMeter
from benchpool_scheduler.core.fairness.hour_standing import AccountKey, HourBudgets, HourStanding
from benchpool_scheduler.core.model import JobFacts, Project, UserUse


@dataclass(frozen=True, slots=True)
class HourOutlook:
    """Budgets, their use so far, and the GPUs that are held."""

    budgets: HourBudgets
    used: Mapping[AccountKey, MonthUse] = field(default_factory=dict)


class BudgetsInTime:
    """Effect of budgets on the jobs of a cluster state as time passes.

    Args:
        projects: Projects of the state. Their weights are first set as configured, then as the
            budgets of each instant require.
        users: Past use with which the state was made.
        now_s: Start of the virtual time.
    """

    def __init__(
        self,
        outlook: HourOutlook,
        projects: Sequence[Project],
        now_s: float,
        users: Sequence[UserUse] = (),
    ) -> None:
        self.budgets = outlook.budgets
        self.meter = HourMeter(outlook.budgets, now_s, outlook.used)
        self._projects = tuple(projects)
        self._users = users
        self._seen: HourStanding | None = None

    def refuses(self, project: str, user: str | None, now_s: float) -> bool:
        """Return whether a submission is rejected now, until ``meter.renewed_s``."""
        keys = self.budgets.accounts_of(project, user)
        return self.meter.standing(now_s).full(keys) is not None

    def hold(self, job: JobFacts, gpus: int, now_s: float) -> None:
        """Record that a job holds ``gpus`` more GPUs from now on, or fewer if negative."""
        self.meter.hold(str(job.project), job.user, gpus, now_s)

    def put(self, state: ClusterState, job: JobFacts, now_s: float) -> None:
        """Add a new job to the state, with the effect of the present budgets."""
        state.put(self.meter.standing(now_s).seen(job, self.budgets))

    def look(self, state: ClusterState, now_s: float) -> ClusterState:
        """Update the state to the present budgets. Return it, or a new one with other weights."""
        standing = self.meter.standing(now_s)
        if standing == self._seen:
            return state
        self._seen = standing
        projects = tuple(self._weighed(project, standing) for project in self._projects)
        if projects != self._projects:
            self._projects = projects
            state = self._rebuilt(state)
        for info in list(state.jobs.values()):
            job = standing.seen(info.job, self.budgets) if info.queued else info.job
            if job is not info.job:
                state.put(job)
        return state

    def _weighed(self, project: Project, standing: HourStanding) -> Project:
        weight = self.budgets.weights.get(project.name, project.weight)
        return standing.weigh(
            project if weight == project.weight else replace(project, weight=weight)
        )

    def _rebuilt(self, state: ClusterState) -> ClusterState:
        other = ClusterState(state.nodes, self._projects, state.policy, self._users, state.topology)
        for info in sorted(state.jobs.values(), key=lambda it: it.age):
            other.put(info.job, info.age)
        return other
