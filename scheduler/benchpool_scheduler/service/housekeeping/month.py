"""Updates of the GPU-hour budgets: as jobs run, months end and settings change."""

from __future__ import annotations

from dataclasses import replace

from benchpool_scheduler.service.ledger.hours_used import HoursUsed
from benchpool_scheduler.service.observed.observed import SchedulerState


async def see_hours(hours: HoursUsed, observed: SchedulerState) -> bool:
    """Update which users are past a budget; return whether this has changed."""
    await hours.refresh(observed.now.configuration)
    return update_hours(hours, observed)


def update_hours(hours: HoursUsed, observed: SchedulerState) -> bool:
    """Update which users are past a budget, from the use counted so far; return whether it has
    changed.
    """
    seen = observed.now
    found = hours.monthly(seen.configuration)
    if found == seen.hours:
        return False
    observed.put(replace(seen, hours=found))
    return True
