"""Previews of what would be sent."""

from __future__ import annotations

from dataclasses import dataclass

from benchpool import handles
from benchpool.drafts import Draft
from benchpool_scheduler.client import schedule_requests
from benchpool_scheduler.contract import Preview
from benchpool_scheduler.contract.schedules import SchedulePreview
from benchpool_scheduler.contract.sweeps import SweepPreview, SweepRequest


@dataclass(frozen=True, slots=True, repr=False)
class DryRun:
    """Preview of a job, a sweep or a schedule. Nothing was sent. ``facts`` has the numbers."""

    facts: Preview | SweepPreview | SchedulePreview

    def __repr__(self) -> str:
        return f"{self.facts.text} Nothing was sent."


def of_draft(draft: Draft, every: str | None = None, zone: str | None = None) -> DryRun:
    """Return the preview of a job or a schedule. Raises the errors of ``submit``."""
    handles.report_problems(draft)
    if every is None:
        return DryRun(handles.client().preview(draft.submission))
    asked = schedule_requests.request_of(draft.submission, every, zone)
    return DryRun(handles.client().preview_schedule(asked))


def of_sweep(request: SweepRequest) -> DryRun:
    """Return the preview of a sweep. Raises the errors of ``sweep``."""
    return DryRun(handles.client().preview_sweep(request))
