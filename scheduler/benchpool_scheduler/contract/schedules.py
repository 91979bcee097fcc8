"""Schedules: one submission that is sent again and again, at set times."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.scalars import Name
from benchpool_scheduler.contract.submission import JobSubmission

When = Annotated[str, Meta(min_length=1, max_length=200)]
Zone = Annotated[str, Meta(min_length=1, max_length=100)]


class ScheduleRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A schedule as its user asks for it.

    ``when`` is five fields of cron, or words such as ``night at 2``, on the clock of ``zone``.
    ``key`` makes a repeat of the same request harmless.
    """

    submission: JobSubmission
    when: When
    zone: Zone = "UTC"
    name: Name | None = None
    key: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class SchedulesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which schedules are listed."""

    all: Annotated[bool, Meta(description="Also those of others that you may see.")] = False
    limit: Annotated[int, Meta(ge=1, le=1000, description="At most so many.")] = 100


class ScheduledOutcome(StrEnum):
    """What came of a time of a schedule.

    ``sent``: a job. ``skipped``: the job before had not ended. ``missed``: the service did not run
    then, and a later time was made up for. ``refused``: the job was not accepted.
    """

    SENT = "sent"
    SKIPPED = "skipped"
    MISSED = "missed"
    REFUSED = "refused"


class ScheduledTime(Struct, frozen=True):
    """A time of a schedule that has come.

    Attributes:
        job: The job that was sent, null when its record was removed or none was.
        state: Of that job, now or at its end; null where none was sent.
        text: Why none was sent.
    """

    at: datetime
    outcome: ScheduledOutcome
    job: str | None
    state: str | None
    text: str


class Schedule(Struct, frozen=True):
    """A schedule: when it sends what, and what came of its last times.

    Attributes:
        when: As it was asked for. ``cron``: the same in the five fields of cron.
        next: The next five times, none while it is paused.
        last: The last ten times, newest first.
        paused: Why nothing is sent, null while it is in force.
    """

    id: str
    name: str
    user: str
    project: str
    when: str
    cron: str
    zone: str
    text: str
    created: datetime
    paused: str | None
    next: list[datetime]
    last: list[ScheduledTime]


class SchedulePreview(Struct, frozen=True):
    """When a schedule would send, before it is sent."""

    text: str
    cron: str
    next: list[datetime]
