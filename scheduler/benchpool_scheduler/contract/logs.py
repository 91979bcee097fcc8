"""Logs and packed results: ranges of bytes, and the events of a log's stream."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract.operation import MIB

AttemptNumber = Annotated[int, Meta(ge=1, le=1_000_000)]
Since = Annotated[datetime, Meta(tz=True)]
WorkerNumber = Annotated[int, Meta(ge=0, le=4096)]


class LogQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Range of a log; by default of the newest attempt and worker 0.

    A negative ``offset`` counts from the current end of the log. ``since`` begins at the log's
    position at that time, to the second, and overrides ``offset``.
    """

    attempt: AttemptNumber | None = None
    worker: WorkerNumber = 0
    offset: Annotated[int, Meta(ge=-(2**40), le=2**40)] = 0
    limit: Annotated[int, Meta(ge=1, le=MIB)] = MIB
    since: Since | None = None


class FollowQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Log to follow, and the byte to start from."""

    attempt: AttemptNumber | None = None
    worker: WorkerNumber = 0
    offset: Annotated[int, Meta(ge=-(2**40), le=2**40)] = 0
    since: Since | None = None


class ResultsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Range of the packed results of a worker."""

    worker: WorkerNumber = 0
    offset: Annotated[int, Meta(ge=0, le=2**40)] = 0
    limit: Annotated[int, Meta(ge=1, le=8 * MIB)] = 8 * MIB


@dataclass(frozen=True, slots=True)
class LogRange:
    """Range of bytes of a log.

    Attributes:
        attempt: Attempt that wrote the log.
        offset: Offset of the first byte.
        next: Offset of the next range.
        skipped: Bytes that the size limit dropped just before ``offset``.
        ended: Whether the log ends after this range.
    """

    data: bytes
    attempt: int
    offset: int
    next: int
    skipped: int
    ended: bool


class LogText(Struct, frozen=True):
    """Part of a log, as sent by the event stream.

    ``skipped`` counts bytes that the size limit dropped just before ``offset``.
    """

    attempt: int
    offset: int
    text: str
    skipped: int = 0


class LogEnd(Struct, frozen=True):
    """Last event of a log's stream."""

    attempt: int
