"""Standing of users and projects against their budgets of GPU-hours, in real and virtual time.

A user or project with a used-up hard budget starts no new job. One above its soft budget continues
with less weight, and a user then ranks behind other users of the project (R5, R7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from benchpool_scheduler.core.fairness.gpu_hours import (
    AccountKind,
    HourAccount,
    HourBudget,
    first_exhausted,
    why_waiting,
)
from benchpool_scheduler.core.model import JobFacts, Project, WaitReason

AccountKey = tuple[AccountKind, str]
Accounts = Mapping[AccountKey, HourAccount]


@dataclass(frozen=True, slots=True)
class HourBudgets:
    """All budgets of a pool, and the months that they count.

    Attributes:
        projects: Budgets of all projects, by name. Projects without a budget are included.
        parents: Parent of each project, or None.
        weights: Weights of all projects, as configured.
        users: Budgets of named users.
        usual: Budget of all other users.
        month_of: Returns begin and end of the month of an instant, in seconds of the clock in use.
    """

    projects: Mapping[str, HourBudget]
    parents: Mapping[str, str | None]
    weights: Mapping[str, float | None]
    users: Mapping[str, HourBudget]
    usual: HourBudget
    month_of: Callable[[float], tuple[float, float]]

    @property
    def bounds(self) -> bool:
        """Return whether any budget is set."""
        every = (self.usual, *self.users.values(), *self.projects.values())
        return any(one.bounds for one in every)

    def of(self, key: AccountKey) -> HourBudget:
        """Return the budget of a user or project."""
        kind, name = key
        if kind == "user":
            return self.users.get(name, self.usual)
        return self.projects.get(name, HourBudget())

    def accounts_of(self, project: str, user: str | None) -> Iterator[AccountKey]:
        """Yield the accounts that a job is charged to: its user, its project and all ancestors."""
        if user is not None:
            yield "user", user
        above: str | None = project
        while above is not None:
            yield "project", above
            above = self.parents.get(above)

    def from_zero(self, zero_s: float) -> HourBudgets:
        """Return the budgets on a clock whose zero is at ``zero_s`` of this one."""

        def month_of(at_s: float) -> tuple[float, float]:
            begin_s, end_s = self.month_of(zero_s + at_s)
            return begin_s - zero_s, end_s - zero_s

        return replace(self, month_of=month_of)

    def ever_allow(self, project: str, user: str | None) -> bool:
        """Return whether a job may start in any month: no hard budget above it is 0."""
        return all(self.of(key).hard != 0 for key in self.accounts_of(project, user))


@dataclass(frozen=True, slots=True)
class HourStanding:
    """Accounts that have reached a bound. Equal until another account reaches one.

    Attributes:
        exhausted: Accounts that block new jobs.
        nearly: Accounts whose hard budget is nearly used.
        past_soft: Accounts above their soft budget.
        weights: Weight factors of projects above their soft budget.
        behind: Users above their soft budget.
    """

    exhausted: Accounts = field(default_factory=dict)
    nearly: Accounts = field(default_factory=dict)
    past_soft: Accounts = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    behind: frozenset[str] = frozenset()

    def full(self, keys: Iterable[AccountKey]) -> HourAccount | None:
        """Return the first of these accounts that blocks new jobs, or None."""
        return first_exhausted(self.exhausted[key] for key in keys if key in self.exhausted)

    def why_waiting(self, keys: Iterable[AccountKey], renewed: str) -> WaitReason | None:
        """Return why a job charged to these accounts may not start, or None if it may."""
        found = self.full(keys) if self.exhausted else None
        return None if found is None else why_waiting(found, renewed)

    def seen(self, job: JobFacts, budgets: HourBudgets) -> JobFacts:
        """Return a job with the effect of this standing. A job that has begun is never blocked."""
        keys = () if job.begun else budgets.accounts_of(str(job.project), job.user)
        blocked, behind = self.why_waiting(keys, ""), job.user in self.behind
        if (blocked, behind) == (job.blocked, job.behind):
            return job
        return replace(job, blocked=blocked, behind=behind)

    def weigh(self, project: Project) -> Project:
        """Return a project with its weight under this standing (R5, R7)."""
        part = self.weights.get(project.name)
        if part is None:
            return project
        weight = project.weight
        if weight is None:
            weight = 1.0 if project.quota is None else float(project.quota - project.reserved)
        # An unset weight does not count as 0 in every division (R5a).
        return replace(project, weight=part * weight) if weight else project


def standing_of(accounts: Iterable[HourAccount]) -> HourStanding:
    """Return the standing of these accounts.

    >>> found = standing_of([HourAccount("project", "a", HourBudget(soft=2, hard=9), 4.0)])
    >>> found.weights, found.exhausted
    ({'a': 0.5}, {})
    """
    found = list(accounts)
    past = [it for it in found if it.past_soft]
    return HourStanding(
        exhausted=_at_bound(it for it in found if it.exhausted),
        nearly=_at_bound(it for it in found if it.nearly_used),
        past_soft=_at_bound(past),
        weights={it.name: it.weight_part for it in past if it.kind == "project"},
        behind=frozenset(it.name for it in past if it.kind == "user"),
    )


def _at_bound(accounts: Iterable[HourAccount]) -> dict[AccountKey, HourAccount]:
    """Return the accounts with their use set to the bound: further use changes no decision."""
    return {
        (it.kind, it.name): replace(it, used_h=it.budget.hard or it.budget.soft or 0.0)
        for it in accounts
    }
