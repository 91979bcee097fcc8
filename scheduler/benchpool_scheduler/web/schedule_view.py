"""Schedules in the words and symbols of their page. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract.schedules import Schedule, ScheduledOutcome, ScheduledTime


@dataclass(frozen=True, slots=True)
class TimeMark:
    """Outcome of a time: its symbol, the same in words, and its job if it is still stored."""

    sign: str
    words: str
    job: str | None


@dataclass(frozen=True, slots=True)
class ScheduleCard:
    """A schedule as its page shows it.

    Attributes:
        rhythm: Its times, in words. ``next``: its next times, in its own time zone.
        last: Outcomes of its last times, the newest last.
        unsent: Why no job was submitted at the newest time, else empty.
    """

    schedule: Schedule
    rhythm: str
    next: tuple[str, ...]
    last: tuple[TimeMark, ...]
    unsent: str


def card(schedule: Schedule) -> ScheduleCard:
    """Return a schedule as its page shows it."""
    newest = schedule.last[0] if schedule.last else None
    unsent = newest is not None and newest.outcome is not ScheduledOutcome.SENT
    return ScheduleCard(
        schedule,
        rhythm(schedule.when, schedule.cron, schedule.zone),
        tuple(f"{at:%a %d %b %H:%M}" for at in schedule.next),
        marks(schedule.last),
        newest.text if newest is not None and unsent else "",
    )


def rhythm(when: str, cron: str, zone: str) -> str:
    """Return the times of a schedule in words.

    Args:
        when: As the user wrote it. ``cron``: the same in five fields. ``zone``: its time zone.

    >>> rhythm("night at 2", "0 2 * * *", "Europe/Berlin")
    'Every night at 02:00, Europe/Berlin'
    >>> rhythm("Every hour", "0 * * * *", "UTC"), rhythm("*/20 8 * * *", "*/20 8 * * *", "UTC")
    ('Every hour, UTC', 'Cron schedule */20 8 * * *, UTC')
    """
    phrase = " ".join(when.split()).lower().removeprefix("every ")
    day, at, _ = phrase.partition(" at ")
    if at:
        minute, hour, *_rest = cron.split()
        return f"Every {day} at {int(hour):02}:{int(minute):02}, {zone}"
    return f"Every hour, {zone}" if phrase == "hour" else f"Cron schedule {cron}, {zone}"


def marks(last: Sequence[ScheduledTime]) -> tuple[TimeMark, ...]:
    """Return the outcomes of the last times, reversed: the input has the newest first."""
    return tuple(_mark(time) for time in reversed(last))


def _mark(time: ScheduledTime) -> TimeMark:
    if time.outcome is not ScheduledOutcome.SENT:
        outcome = time.outcome.value
    else:
        outcome = time.state or "sent; the job is no longer kept"
    return TimeMark(time.sign, f"{time.at:%a %d %b %H:%M}: {outcome}", time.job)
