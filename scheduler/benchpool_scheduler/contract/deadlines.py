"""Whether a job will have ended by its deadline, as its readers are told."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class DeadlineOutlook(StrEnum):
    """How a job stands against its deadline."""

    WILL_BE_MET = "will-be-met"
    """As things stand it ends in time."""
    AT_RISK = "at-risk"
    """It may end in time, and it may end too late."""
    WILL_BE_MISSED = "will-be-missed"
    """As things stand it ends too late."""
    CANNOT_BE_TOLD = "cannot-be-told"
    """Nobody knows when it starts, or how long it runs."""
    MET = "met"
    """It ended well in time."""
    MISSED = "missed"
    """It had not ended well when the time came."""


class DeadlineStanding(Struct, frozen=True):
    """Whether a job will have ended by its deadline, as far as that can be told now.

    ``text`` says it in a sentence, with what it rests on. ``earliest_end`` and ``latest_end`` are
    when it may end; null where that is not known, and once it has ended.
    """

    state: DeadlineOutlook
    text: str
    earliest_end: datetime | None = None
    latest_end: datetime | None = None
