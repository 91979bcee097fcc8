"""GPU-hours of a month in virtual time, for replays and estimates of starts."""

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
    """Use of budgets from an instant on.

    Args:
        used: Use in the present month up to then, with the GPUs that are held.
    """

    def __init__(
        self, budgets: HourBudgets, now_s: float, used: Mapping[AccountKey, MonthUse] | None = None
    ) -> None:
        self.budgets = budgets
        self._month = budgets.month_of(now_s)
        self._uses = dict(used or {})

    @property
    def renewed_s(self) -> float:
        """Return when the next month begins."""
        return self._month[1]

    def hold(self, project: str, user: str | None, gpus: int, now_s: float) -> None:
        """Record ``gpus`` more GPUs held by a project and a user, or fewer if negative."""
        self._renew(now_s)
        at_ms = self._since_ms(now_s)
        for key in self.budgets.accounts_of(project, user):
            if self.budgets.of(key).bounds:
                change = MonthUse(gpus=gpus, begun_ms=gpus * at_ms)
                self._uses[key] = self._uses.get(key, MonthUse()).plus(change)

    def standing(self, now_s: float) -> HourStanding:
        """Return the standing at an instant. Instants must not go backwards."""
        self._renew(now_s)
        return standing_of(self._accounts(now_s))

    def next_change_s(self, now_s: float) -> float:
        """Return when an account's standing changes next if no job starts or ends until then."""
        self._renew(now_s)
        least_ms = self._since_ms(now_s) + 1
        found = [self._month[1]]
        for account in self._accounts(now_s):
            use = self._uses[account.kind, account.name]
            hours = account.next_bound_h
            if hours is not None and use.gpus > 0:
                # Plus 1 ms, because a soft budget must be exceeded. Rounded, because a product of
                # floats may lie just above the intended millisecond.
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
        """Start the month of an instant if a new one has begun. Held GPUs count from its start."""
        if now_s >= self._month[1]:
            self._month = self.budgets.month_of(now_s)
            self._uses = {
                key: MonthUse(gpus=use.gpus) for key, use in self._uses.items() if use.gpus
            }
