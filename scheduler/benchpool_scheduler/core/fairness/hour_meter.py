"""GPU-hours of a month in virtual time: what replays and estimates of starts know of budgets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from benchpool_scheduler.core.fairness.gpu_hours import HOUR_S, HourAccount, MonthUse
from benchpool_scheduler.core.fairness.hour_standing import (
    AccountKey,
    HourBudgets,
    HourStanding,
    standing_of,
)

HOUR_MS = HOUR_S * 1000


class HourMeter:
    """What is used of budgets, from an instant on.

    Args:
        used: What was used by then in the month that is under way, and which GPUs are held.
    """

    def __init__(
        self, budgets: HourBudgets, now_s: float, used: Mapping[AccountKey, MonthUse] | None = None
    ) -> None:
        self.budgets = budgets
        self._month = budgets.month_of(now_s)
        self._uses = dict(used or {})

    @property
    def renewed_s(self) -> float:
        """When the next month begins."""
        return self._month[1]

    def hold(self, project: str, user: str | None, gpus: int, now_s: float) -> None:
        """So many GPUs more are held from now on, for a project and a user; fewer if negative."""
        self._renew(now_s)
        at_ms = self._since_ms(now_s)
        for key in self.budgets.accounts_of(project, user):
            if self.budgets.of(key).bounds:
                change = MonthUse(gpus=gpus, begun_ms=gpus * at_ms)
                self._uses[key] = self._uses.get(key, MonthUse()).plus(change)

    def standing(self, now_s: float) -> HourStanding:
        """Return who is past a budget at an instant, none before the last that was asked about."""
        self._renew(now_s)
        return standing_of(self._accounts(now_s))

    def next_change_s(self, now_s: float) -> float:
        """Return when somebody's standing changes next, if nothing starts or ends until then."""
        self._renew(now_s)
        least_ms = self._since_ms(now_s) + 1
        found = [self._month[1]]
        for account in self._accounts(now_s):
            use = self._uses[account.kind, account.name]
            hours = account.next_bound_h
            if hours is not None and use.gpus > 0:
                # One more, for a soft budget must be passed; rounded, for a product of floats may
                # lie just above the millisecond that is meant.
                bound_ms = math.ceil(round(hours * HOUR_MS, 3)) + 1
                need = bound_ms - use.over_ms + use.begun_ms
                at_ms = max(least_ms, math.ceil(need / use.gpus))
                found.append(self._month[0] + at_ms / 1000)
        return min(found)

    def _accounts(self, now_s: float) -> Iterable[HourAccount]:
        since_s = now_s - self._month[0]
        for (kind, name), use in self._uses.items():
            budget = self.budgets.of((kind, name))
            if budget.bounds:
                yield HourAccount(kind, name, budget, use.hours(since_s))

    def _since_ms(self, now_s: float) -> int:
        return round((now_s - self._month[0]) * 1000)

    def _renew(self, now_s: float) -> None:
        """Begin the month of an instant anew; what is held counts from its begin."""
        if now_s >= self._month[1]:
            self._month = self.budgets.month_of(now_s)
            self._uses = {
                key: MonthUse(gpus=use.gpus) for key, use in self._uses.items() if use.gpus
            }
