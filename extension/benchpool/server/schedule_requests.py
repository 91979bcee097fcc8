"""Schedule request of the dialog: the times as typed."""

from __future__ import annotations

from msgspec import Struct

from benchpool.drafts import Draft
from benchpool_scheduler.client import schedule_requests
from benchpool_scheduler.contract.schedules import ScheduleRequest, When, Zone


class DialogSchedule(Struct, frozen=True, forbid_unknown_fields=True):
    """Schedule requested in the dialog. ``when``: words or five fields of cron, as ``--every``."""

    when: When
    zone: Zone = "UTC"


def request_of(schedule: DialogSchedule, draft: Draft) -> ScheduleRequest:
    """Return the schedule of a draft."""
    return schedule_requests.request_of(draft.submission, schedule.when, schedule.zone)


def words_of(schedule: DialogSchedule) -> list[str]:
    """Return the equivalent options of ``benchpool submit`` and ``%%train``.

    >>> words_of(DialogSchedule("night at 2", "Europe/Berlin"))
    ['--every', 'night at 2', '--zone', 'Europe/Berlin']
    """
    return ["--every", schedule.when, "--zone", schedule.zone]
