"""Operations on schedules: one submission, sent repeatedly at set times."""

from __future__ import annotations

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.operation import MIB, Given, Repeat, given, operation
from benchpool_scheduler.contract.schedules import (
    Schedule,
    SchedulePreview,
    ScheduleRequest,
    SchedulesQuery,
)


class ScheduleOperations:
    """Creation, listing, pausing, resuming and removal of schedules."""

    @operation(
        "POST",
        "schedules",
        Schedule,
        body=ScheduleRequest,
        max_body=16 * MIB,
        lab=True,
        statuses={201: "In force. A repeated key returns the first schedule."},
        repeat=Repeat.BY_KEY,
    )
    def begin_schedule(self, asked: ScheduleRequest) -> Given:
        """Create a schedule. Nothing is sent before its first time."""
        return given(body=asked)

    @operation(
        "POST",
        "schedules/preview",
        SchedulePreview,
        body=ScheduleRequest,
        max_body=16 * MIB,
        lab=True,
        changes=False,
    )
    def preview_schedule(self, asked: ScheduleRequest) -> Given:
        """Preview the times of a schedule without creating it."""
        return given(body=asked)

    @operation(
        "GET",
        "schedules",
        list[Schedule],
        query=SchedulesQuery,
        lab=True,
        verb=PlainVerb(
            ("schedules",), "List your schedules with the outcomes of their last times."
        ),
        tool=True,
    )
    def schedules(self, all: bool = False, limit: int = 100) -> Given:
        """List schedules, newest first: your own, or all that you may see."""
        return given(query={"all": all, "limit": limit})

    @operation(
        "GET",
        "schedules/{schedule}",
        Schedule,
        lab=True,
        verb=PlainVerb(("schedule",), "Show a schedule: its next five times and its last ten."),
        tool=True,
    )
    def schedule(self, id_: str) -> Given:
        """Read a schedule."""
        return given(schedule=id_)

    @operation(
        "POST",
        "schedules/{schedule}/pause",
        Schedule,
        lab=True,
        verb=PlainVerb(
            ("pause-schedule",), "Pause a schedule; it sends nothing until it is resumed."
        ),
        tool=True,
    )
    def pause_schedule(self, id_: str) -> Given:
        """Pause a schedule until it is resumed; a job that was already sent continues."""
        return given(schedule=id_)

    @operation(
        "POST",
        "schedules/{schedule}/resume",
        Schedule,
        lab=True,
        verb=PlainVerb(
            ("resume-schedule",),
            "Resume a paused schedule, from its next time on.",
        ),
        tool=True,
    )
    def resume_schedule(self, id_: str) -> Given:
        """Resume a schedule from its next time; missed times are not made up for."""
        return given(schedule=id_)

    @operation(
        "POST",
        "schedules/{schedule}/remove",
        Schedule,
        lab=True,
        verb=PlainVerb(("remove-schedule",), "Remove a schedule; its jobs stay as they are."),
        tool=True,
    )
    def remove_schedule(self, id_: str) -> Given:
        """Remove a schedule and return its last state; its jobs stay as they are."""
        return given(schedule=id_)
