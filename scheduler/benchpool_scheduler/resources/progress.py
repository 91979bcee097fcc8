"""Progress and measurements of a job in the status of a ``TrainingJob``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.job_usage import JobMeasurements
from benchpool_scheduler.contract.jobs import TrackerRun


class ProgressStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Last progress report of the job."""

    at: datetime
    fraction: float | None = None
    text: Annotated[str, Meta(max_length=4096)] | None = None
    checkpoint_at: datetime | None = None
    saved: float | None = None
    step: Annotated[int, Meta(ge=0)] | None = None
    attempt: Annotated[int, Meta(ge=0)] = 0
    before: float | None = None
    first_at: Annotated[
        datetime | None, Meta(description="Start of the measurement of its pace in this attempt.")
    ] = None
    first_fraction: Annotated[float | None, Meta(description="Progress at that time, 0 to 1.")] = (
        None
    )
    runs: Annotated[
        tuple[TrackerRun, ...],
        Meta(max_length=8, description="Its runs in trackers, as reported by the job."),
    ] = ()


class MeasuredStatus(JobMeasurements, frozen=True, rename="camel", omit_defaults=True):
    """Measurements of the job until its end."""
