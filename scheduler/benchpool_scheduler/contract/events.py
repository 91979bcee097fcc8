"""Events of the pool's event stream."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract.jobs import Job
from benchpool_scheduler.contract.pool import GpuState


class EventsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Start of the stream: after this sequence number, or from now."""

    after: Annotated[int, Meta(ge=0, lt=2**60)] | None = None


class JobDeleted(Struct, frozen=True):
    """Job whose record was removed by retention."""

    id: str


class PoolNow(Struct, frozen=True):
    """State of the pool in an event: part of ``Status``."""

    text: str
    counts: dict[GpuState, int]
    queue_length: int
    running: int
    bench_line: int = 0


class PoolEvent(Struct, frozen=True):
    """Event of the stream, as a reader receives it.

    Attributes:
        kind: ``open`` when a connection is established (reload what you show, once), ``job`` with
            the job as it is now, ``pool`` when the pool's state changed, ``deleted`` when a job's
            record was removed, ``reset`` when too much was missed: reload what you show.
        seq: Sequence number; None for ``open``.
        data: The job, the deletion, or the pool.
        raw: JSON of the data as received.
    """

    kind: Literal["open", "job", "pool", "deleted", "reset"]
    seq: int | None = None
    data: Job | JobDeleted | PoolNow | None = None
    raw: bytes = b""
