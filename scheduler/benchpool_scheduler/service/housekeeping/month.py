"""Keeps what is known of budgets of GPU-hours true: as jobs run, months end and settings change."""

from __future__ import annotations

from dataclasses import replace

from benchpool_scheduler.service.ledger.hours_used import HoursUsed
from benchpool_scheduler.service.observed.observed import SchedulerState


async def see_hours(hours: HoursUsed, observed: SchedulerState) -> bool:
    """Learn who is past a budget now; tell whether somebody else is than before."""
    await hours.refresh(observed.now.configuration)
    return tell_hours(hours, observed)


def tell_hours(hours: HoursUsed, observed: SchedulerState) -> bool:
    """Say who is past a budget by the configuration in force, as far as use is counted."""
    seen = observed.now
    found = hours.monthly(seen.configuration)
    if found == seen.hours:
        return False
    observed.put(replace(seen, hours=found))
    return True
