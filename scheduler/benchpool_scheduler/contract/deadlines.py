"""Deadlines: whether a job is expected to end in time."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class DeadlineOutlook(StrEnum):
    """Standing of a job against its deadline."""

    WILL_BE_MET = "will-be-met"
    """The job is expected to end in time."""
    AT_RISK = "at-risk"
    """The job may end in time or too late."""
    WILL_BE_MISSED = "will-be-missed"
    """The job is expected to end too late."""
    CANNOT_BE_TOLD = "cannot-be-told"
    """The start or the run time of the job is unknown."""
    MET = "met"
    """The job succeeded before its deadline."""
    MISSED = "missed"
    """The job did not succeed before its deadline."""


class DeadlineStanding(Struct, frozen=True):
    """Current forecast of whether a job ends before its deadline.

    ``text`` is the forecast in a sentence, with its basis. ``earliest_end`` and ``latest_end``
    bound the expected end. They are null where it is unknown, and after the job has ended.
    """

    state: DeadlineOutlook
    text: str
    earliest_end: datetime | None = None
    latest_end: datetime | None = None
