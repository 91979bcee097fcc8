"""Schedules: one submission that is sent repeatedly at set times."""

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
    """Schedule requested by a user.

    ``when`` is five fields of cron, or words such as ``night at 2``, in the time zone ``zone``.
    ``key`` makes a repeat of the same request harmless.
    """

    submission: JobSubmission
    when: When
    zone: Zone = "UTC"
    name: Name | None = None
    key: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class SchedulesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Filter of schedules."""

    all: Annotated[bool, Meta(description="Include schedules of other users that you may see.")] = (
        False
    )
    limit: Annotated[int, Meta(ge=1, le=1000, description="Maximum number of schedules.")] = 100


class ScheduledOutcome(StrEnum):
    """Outcome of a time of a schedule.

    ``sent``: a job was sent. ``skipped``: the previous job had not ended. ``missed``: the service
    was not running, and a later time was made up for. ``refused``: the job was rejected.
    """

    SENT = "sent"
    SKIPPED = "skipped"
    MISSED = "missed"
    REFUSED = "refused"


class ScheduledTime(Struct, frozen=True):
    """Past time of a schedule.

    Attributes:
        job: Job that was sent; null if its record was removed or no job was sent.
        state: State of that job, now or at its end; null if no job was sent.
        text: Why no job was sent.
    """

    at: datetime
    outcome: ScheduledOutcome
    job: str | None
    state: str | None
    text: str

    @property
    def sign(self) -> str:
        """One character for the outcome; see ``LEGEND``."""
        return _UNSENT.get(self.outcome) or _ENDED.get(self.state or "", "·")


LEGEND = "✓ succeeded, ✗ failed, c cancelled, · not ended, s skipped, m missed, r refused"
_ENDED = {"succeeded": "✓", "failed": "✗", "cancelled": "c"}
_UNSENT = {
    ScheduledOutcome.SKIPPED: "s",
    ScheduledOutcome.MISSED: "m",
    ScheduledOutcome.REFUSED: "r",
}


class Schedule(Struct, frozen=True):
    """Schedule with its next times and the outcomes of its last ones.

    Attributes:
        when: Times as requested.
        cron: The same times in the five fields of cron.
        paused: Why no jobs are sent, null while it is in force.
        next: The next five times, none while it is paused.
        last: The last ten times, newest first.
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

    @property
    def signs(self) -> str:
        """Outcomes of the last times, one character each, the newest at the right; ``-`` if none.

        See ``LEGEND``.
        """
        return "".join(time.sign for time in reversed(self.last)) or "-"

    @property
    def next_text(self) -> str:
        """The next times in the schedule's time zone; empty while it is paused."""
        return ", ".join(f"{at:%a %d %b %H:%M}" for at in self.next)


class SchedulePreview(Struct, frozen=True):
    """Times of a schedule before it is created."""

    text: str
    cron: str
    next: list[datetime]
