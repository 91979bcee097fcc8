"""Schedules: a script, notebook, cell or function that the pool sends as a job at set times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from benchpool import handles
from benchpool_scheduler.client import schedule_requests, snapshot
from benchpool_scheduler.contract.schedules import Schedule

if TYPE_CHECKING:
    from datetime import datetime

    from benchpool.drafts import Draft
    from benchpool.handles import JobHandle
    from benchpool_scheduler.contract.schedules import ScheduledTime


class ScheduleHandle:
    """Schedule of the pool, with its next times and its last jobs, and methods to pause it.

    Attributes:
        facts: The schedule as last read.
    """

    def __init__(self, facts: Schedule) -> None:
        self.facts = facts

    @property
    def id(self) -> str:
        """Schedule ID."""
        return self.facts.id

    @property
    def name(self) -> str:
        """Name of the schedule and of its jobs."""
        return self.facts.name

    @property
    def next(self) -> list[datetime]:
        """Next five times in the schedule's time zone, read from the pool; none while paused."""
        return self.refresh().facts.next

    @property
    def last(self) -> list[ScheduledTime]:
        """Outcomes of the last ten times, read from the pool, newest first."""
        return self.refresh().facts.last

    @property
    def paused(self) -> str | None:
        """Why no jobs are sent, read from the pool, or None."""
        return self.refresh().facts.paused

    @property
    def jobs(self) -> list[JobHandle]:
        """Jobs of the last ten times that the pool still has, newest first."""
        return [handles.job(time.job) for time in self.last if time.job is not None]

    def refresh(self) -> Self:
        """Read the schedule again and return it."""
        self.facts = handles.client().schedule(self.id)
        return self

    def pause(self) -> Self:
        """Send no jobs until ``resume``. A job that was already sent continues."""
        self.facts = handles.client().pause_schedule(self.id)
        return self

    def resume(self) -> Self:
        """Send jobs again from the next time on. Times during the pause are not made up for."""
        self.facts = handles.client().resume_schedule(self.id)
        return self

    def remove(self) -> None:
        """Remove the schedule. Its jobs stay as they are."""
        handles.client().remove_schedule(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScheduleHandle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        facts = self.facts
        lines = [f"{self.id[:8]} {facts.name}: {facts.text}"]
        lines += [f"next: {facts.next_text}"] if facts.next else []
        lines += [f"last: {facts.signs}"] if facts.last else []
        return "\n".join(lines)


def send_or_repeat(draft: Draft, every: str | None, zone: str | None) -> JobHandle | ScheduleHandle:
    """Submit a draft, or with ``every`` create a schedule of it.

    Raises the errors of ``benchpool.submit``.
    """
    schedule_requests.check_alone(every, zone, [], flag="")
    return handles.send(draft) if every is None else begin(draft, every, zone)


def begin(draft: Draft, every: str, zone: str | None = None) -> ScheduleHandle:
    """Create a schedule of a drafted job. Raises the errors of ``benchpool.submit``."""
    handles.report_problems(draft)
    request = schedule_requests.request_of(draft.submission, every, zone)
    # Refusals come before any upload.
    handles.client().preview_schedule(request)
    snapshot.upload(handles.client(), draft.contents)
    return ScheduleHandle(handles.client().begin_schedule(request))


def schedules(*, all: bool = False, limit: int = 100) -> list[ScheduleHandle]:
    """Return your schedules, newest first, or with ``all`` every schedule that you may see."""
    return [ScheduleHandle(one) for one in handles.client().schedules(all=all, limit=limit)]
