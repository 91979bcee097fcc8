"""Who is past a budget of GPU-hours, and what follows: the rule, for service and virtual time.

A user or project whose hard budget is used up begins nothing new; one that is past the soft one
goes on with less weight, a user behind others of the project (R5, R7).
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
        projects: Of all projects, by name; those without a budget are there, too.
        parents: The project above each, None for none.
        weights: Of all projects, as configured.
        users: Of those that are named. ``usual``: of all others.
        month_of: Begin and end of the month of an instant, in seconds of the clock in use.
    """

    projects: Mapping[str, HourBudget]
    parents: Mapping[str, str | None]
    weights: Mapping[str, float | None]
    users: Mapping[str, HourBudget]
    usual: HourBudget
    month_of: Callable[[float], tuple[float, float]]

    @property
    def bounds(self) -> bool:
        """Whether there is any budget at all."""
        every = (self.usual, *self.users.values(), *self.projects.values())
        return any(one.bounds for one in every)

    def of(self, key: AccountKey) -> HourBudget:
        """Return the budget of a user or project."""
        kind, name = key
        if kind == "user":
            return self.users.get(name, self.usual)
        return self.projects.get(name, HourBudget())

    def accounts_of(self, project: str, user: str | None) -> Iterator[AccountKey]:
        """Yield for whom a job counts: its user, its project and all above."""
        if user is not None:
            yield "user", user
        above: str | None = project
        while above is not None:
            yield "project", above
            above = self.parents.get(above)

    def from_zero(self, zero_s: float) -> HourBudgets:
        """Return these by a clock that says 0 at an instant of this one."""

        def month_of(at_s: float) -> tuple[float, float]:
            begin_s, end_s = self.month_of(zero_s + at_s)
            return begin_s - zero_s, end_s - zero_s

        return replace(self, month_of=month_of)

    def ever_allow(self, project: str, user: str | None) -> bool:
        """Tell whether a job may begin in any month: no hard budget over it is 0."""
        return all(self.of(key).hard != 0 for key in self.accounts_of(project, user))


@dataclass(frozen=True, slots=True)
class HourStanding:
    """Who is past a budget; the same value as long as nobody comes to be.

    Attributes:
        exhausted: Accounts that let nothing new begin.
        nearly: Accounts whose hard budget is nearly used. ``past_soft``: past their soft budget.
        weights: By what the weights of projects are multiplied that are past the soft budget.
        behind: Users past theirs.
    """

    exhausted: Accounts = field(default_factory=dict)
    nearly: Accounts = field(default_factory=dict)
    past_soft: Accounts = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    behind: frozenset[str] = frozenset()

    def full(self, keys: Iterable[AccountKey]) -> HourAccount | None:
        """Return the first of these accounts that lets nothing new begin."""
        return first_exhausted(self.exhausted[key] for key in keys if key in self.exhausted)

    def why_waiting(self, keys: Iterable[AccountKey], renewed: str) -> WaitReason | None:
        """Return why a job that counts for these may not begin; None where it may."""
        found = self.full(keys) if self.exhausted else None
        return None if found is None else why_waiting(found, renewed)

    def seen(self, job: JobFacts, budgets: HourBudgets) -> JobFacts:
        """Return a job as it is where this holds: one that has begun before goes on."""
        keys = () if job.begun else budgets.accounts_of(str(job.project), job.user)
        blocked, behind = self.why_waiting(keys, ""), job.user in self.behind
        if (blocked, behind) == (job.blocked, job.behind):
            return job
        return replace(job, blocked=blocked, behind=behind)

    def weigh(self, project: Project) -> Project:
        """Return a project with the weight that it has where this holds (R5, R7)."""
        part = self.weights.get(project.name)
        if part is None:
            return project
        weight = project.weight
        if weight is None:
            weight = 1.0 if project.quota is None else float(project.quota - project.reserved)
        # A weight that is not written is not 0 in every division (R5a).
        return replace(project, weight=part * weight) if weight else project


def standing_of(accounts: Iterable[HourAccount]) -> HourStanding:
    """Return who of these is past a budget.

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
    """Return accounts as at their bound: what goes on uses more, and that changes no decision."""
    return {
        (it.kind, it.name): replace(it, used_h=it.budget.hard or it.budget.soft or 0.0)
        for it in accounts
    }
