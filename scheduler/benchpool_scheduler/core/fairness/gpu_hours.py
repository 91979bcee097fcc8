"""Monthly budgets of GPU-hours: a soft budget lowers the weight, a hard budget blocks new jobs.

A budget limits a sum over time, while quotas limit what is held at once. A budget never stops a
running job and never changes guaranteed quotas.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.core.model import WaitReason

AccountKind = Literal["user", "project"]
HOUR_S = 3600.0
NEARLY = 0.9
"""Share of a hard budget from which it counts as nearly used."""
STEPS = 20
"""Number of weight steps. Each step is one twentieth, and causes a new division of the surplus."""


@dataclass(frozen=True, slots=True)
class HourBudget:
    """GPU-hours that may be used in a month. None means no bound."""

    soft: float | None = None
    hard: float | None = None

    @property
    def bounds(self) -> bool:
        """Return whether any bound is set."""
        return self.soft is not None or self.hard is not None


@dataclass(frozen=True, slots=True)
class HourAccount:
    """Use of the present month's budget by a project or user.

    Attributes:
        used_h: GPU-hours used.
    """

    kind: AccountKind
    name: str
    budget: HourBudget
    used_h: float

    @property
    def exhausted(self) -> bool:
        """Return whether no new job may start."""
        return self.budget.hard is not None and self.used_h >= self.budget.hard

    @property
    def nearly_used(self) -> bool:
        """Return whether the hard budget is nearly used, but not used up.

        >>> [HourAccount("user", "joe", HourBudget(hard=10), used).nearly_used
        ...  for used in (8.9, 9.0, 10.0)]
        [False, True, False]
        """
        hard = self.budget.hard
        return hard is not None and NEARLY * hard <= self.used_h < hard

    @property
    def past_soft(self) -> bool:
        """Return whether the soft budget is exceeded."""
        return self.budget.soft is not None and self.used_h > self.budget.soft

    @property
    def weight_part(self) -> float:
        """Return the factor for its weight (R5, R7): 1 within the soft budget.

        Above it, the factor is soft budget / hours used, rounded up to a twentieth. A project at
        twice its soft budget earns half the surplus.

        >>> [HourAccount("project", "a", HourBudget(soft=100), used).weight_part
        ...  for used in (100, 101, 200, 1e9)]
        [1.0, 1.0, 0.5, 0.05]
        """
        soft = self.budget.soft
        if soft is None or self.used_h <= soft:
            return 1.0
        return max(1, math.ceil(STEPS * soft / self.used_h)) / STEPS

    @property
    def next_bound_h(self) -> float | None:
        """Return the GPU-hours at which its standing changes next, or None if never.

        >>> [HourAccount("project", "a", HourBudget(10, 30), used).next_bound_h
        ...  for used in (9, 10, 20, 30)]
        [10, 10, 22.22222222222222, 33.333333333333336]
        """
        soft, hard = self.budget.soft, self.budget.hard
        found: list[float] = []
        if hard is not None and self.used_h < hard:
            found.append(hard)
        if soft is not None and self.used_h <= soft:
            found.append(soft)
        elif soft is not None and (steps := round(self.weight_part * STEPS)) > 1:
            found.append(STEPS * soft / (steps - 1))
        return min(found, default=None)


@dataclass(frozen=True, slots=True)
class MonthUse:
    """Use in a month: GPU milliseconds of ended use, and GPUs that are still held.

    Attributes:
        begun_ms: Sum of the start times of the held GPUs, in milliseconds since the month began.
    """

    over_ms: int = 0
    gpus: int = 0
    begun_ms: int = 0

    def plus(self, other: MonthUse, sign: int = 1) -> MonthUse:
        """Return the sum of both, or the difference with ``sign`` -1."""
        return MonthUse(
            self.over_ms + sign * other.over_ms,
            self.gpus + sign * other.gpus,
            self.begun_ms + sign * other.begun_ms,
        )

    def hours(self, since_month_s: float) -> float:
        """Return the GPU-hours at an instant, given in seconds since the month began.

        >>> MonthUse(over_ms=1_800_000, gpus=2, begun_ms=2 * 900_000).hours(1800)
        1.0
        """
        going_ms = max(0, self.gpus * round(since_month_s * 1000) - self.begun_ms)
        return (self.over_ms + going_ms) / (HOUR_S * 1000)


def first_exhausted(accounts: Iterable[HourAccount]) -> HourAccount | None:
    """Return the first account that blocks new jobs, or None."""
    return next((it for it in accounts if it.exhausted), None)


def why_waiting(account: HourAccount, renewed: str) -> WaitReason:
    """Return the reason of a job that was accepted before the budget was used up.

    Args:
        renewed: Day of the renewal, formatted for users.
    """
    hard = account.budget.hard or 0.0
    text = (
        f"the {account.kind} {account.name} has used up its {hard:g} GPU-hours of this month, "
        "and its new jobs start again when the next month begins"
    )
    remedy = f"it may start from {renewed} on, or when an administrator raises the budget"
    if not hard:
        text = f"the {account.kind} {account.name} may use no GPU-hours"
        remedy = "it may start when an administrator grants some"
    return WaitReason(
        code=ReasonCode.BUDGET_USED_UP,
        text=text,
        numbers={account.kind: account.name, "limit_gpu_h": hard, "renewed": renewed},
        remedy=remedy,
    )


def seconds_between(begun: float, ended: float, month: tuple[float, float]) -> float:
    """Return the seconds of an interval that lie inside a month.

    >>> seconds_between(5, 25, (10, 20)), seconds_between(5, 9, (10, 20))
    (10, 0.0)
    """
    return max(0.0, min(ended, month[1]) - max(begun, month[0]))
