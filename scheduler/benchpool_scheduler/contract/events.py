"""The data of event streams: of the pool, and of a log."""

from __future__ import annotations

from msgspec import Struct

from benchpool_scheduler.contract.pool import GpuState


class JobDeleted(Struct, frozen=True):
    """A job whose record was removed from the service by age."""

    id: str


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


class PoolNow(Struct, frozen=True):
    """The pool as an event tells it: part of ``Status``."""

    text: str
    counts: dict[GpuState, int]
    queue_length: int
    running: int
    bench_line: int = 0
