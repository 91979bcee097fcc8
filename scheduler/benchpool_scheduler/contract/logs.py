"""Logs and packed results: ranges of bytes, and what a log's event stream tells."""

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
    """Which bytes of which log: the newest attempt and worker 0 unless said otherwise.

    A negative ``offset`` counts from the log's present end; ``since`` begins where the log was at
    that time, to a second, and goes before ``offset``.
    """

    attempt: AttemptNumber | None = None
    worker: WorkerNumber = 0
    offset: Annotated[int, Meta(ge=-(2**40), le=2**40)] = 0
    limit: Annotated[int, Meta(ge=1, le=MIB)] = MIB
    since: Since | None = None


class FollowQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which log to follow, and from which byte."""

    attempt: AttemptNumber | None = None
    worker: WorkerNumber = 0
    offset: Annotated[int, Meta(ge=-(2**40), le=2**40)] = 0
    since: Since | None = None


class ResultsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which bytes of the packed results of which worker."""

    worker: WorkerNumber = 0
    offset: Annotated[int, Meta(ge=0, le=2**40)] = 0
    limit: Annotated[int, Meta(ge=1, le=8 * MIB)] = 8 * MIB


@dataclass(frozen=True, slots=True)
class LogRange:
    """Some bytes of a log.

    Attributes:
        attempt: Whose log it is. ``offset``: where the bytes begin; ``next``: where to go on.
        skipped: Bytes that the size bound dropped just before ``offset``.
        ended: Nothing more will come after these.
    """

    data: bytes
    attempt: int
    offset: int
    next: int
    skipped: int
    ended: bool


class LogText(Struct, frozen=True):
    """Part of a log as the event stream sends it.

    ``skipped`` counts bytes that the size bound dropped just before ``offset``.
    """

    attempt: int
    offset: int
    text: str
    skipped: int = 0


class LogEnd(Struct, frozen=True):
    """Last event of a log's stream."""

    attempt: int
