"""Messages about schedules: a refused job, and a pause that the owner did not request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.contract.schedules import ScheduledOutcome
from benchpool_scheduler.notifications.conditions import PoolCondition
from benchpool_scheduler.notifications.delivery_state import Subscription
from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.notifications.job_messages import oldest_sent
from benchpool_scheduler.schedules.decisions import MOST_KEPT
from benchpool_scheduler.store.schedule_files import ScheduleRecord, TimeRecord


class KnownSchedules(Protocol):
    """Interface to all schedules."""

    def all(self) -> Iterator[ScheduleRecord]:
        """Return all schedules."""
        ...


def of_schedule(
    schedule: ScheduleRecord, subscription: Subscription, now: float
) -> Iterator[Message]:
    """Yield the messages about a schedule for its owner that are due."""
    if NotificationEvent.SCHEDULE not in subscription.events:
        return
    oldest = oldest_sent(subscription, now)
    for time in _first_refused(schedule):
        if time.at >= oldest:
            id_ = f"{schedule.id}-{int(time.at)}-refused"
            text = f"{_named(schedule)} sent no job at its time: {time.text}"
            yield _message(id_, time.at, text)
    at = schedule.paused_at
    if schedule.paused is not None and at is not None and at >= oldest:
        text = f"{_named(schedule)} sends nothing until it is resumed: {schedule.paused}"
        yield _message(f"{schedule.id}-{int(at)}-paused", at, text)


def of_ownerless(schedules: Iterable[ScheduleRecord]) -> Iterator[PoolCondition]:
    """Yield conditions for administrators: schedules whose owner no longer exists in the Hub."""
    for it in schedules:
        if it.owner_gone:
            text = f"{_named(it)} of {it.user} sends nothing: {it.paused}"
            event, path = NotificationEvent.SCHEDULE, "schedules?all=1"
            yield PoolCondition(f"schedule-{it.id}", event, text, path)


def _first_refused(schedule: ScheduleRecord) -> Iterator[TimeRecord]:
    """Yield the first refused time of each series of refusals."""
    last = schedule.last
    for place, time in enumerate(last):
        if time.outcome is not ScheduledOutcome.REFUSED:
            continue
        before = last[place + 1].outcome if place + 1 < len(last) else None
        unknown = before is None and len(last) >= MOST_KEPT
        if before is not ScheduledOutcome.REFUSED and not unknown:
            yield time


def _message(id_: str, at: float, text: str) -> Message:
    return Message(id_, NotificationEvent.SCHEDULE, at, text, "schedules")


def _named(schedule: ScheduleRecord) -> str:
    return f"Schedule {schedule.name} ({schedule.id[:8]})"
