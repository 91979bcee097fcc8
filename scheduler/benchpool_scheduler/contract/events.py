"""What happens, as the pool's event stream tells it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract.jobs import Job
from benchpool_scheduler.contract.pool import GpuState


class EventsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """From where: after this sequence number, or from now."""

    after: Annotated[int, Meta(ge=0, lt=2**60)] | None = None


class JobDeleted(Struct, frozen=True):
    """A job whose record was removed from the service by age."""

    id: str


class PoolNow(Struct, frozen=True):
    """The pool as an event tells it: part of ``Status``."""

    text: str
    counts: dict[GpuState, int]
    queue_length: int
    running: int
    bench_line: int = 0


class PoolEvent(Struct, frozen=True):
    """One change, as its reader gets it.

    Attributes:
        kind: ``open`` when a connection stands (read anew what you show, once), ``job`` with the
            job as it is now, ``pool`` when the pool's state changed, ``deleted`` when a job's
            record is gone, ``reset`` when too much was missed: read anew what you show.
        seq: Sequence number; None for ``open``.
        data: The job, the deletion, or the pool; ``raw``: its JSON as it came.
    """

    kind: Literal["open", "job", "pool", "deleted", "reset"]
    seq: int | None = None
    data: Job | JobDeleted | PoolNow | None = None
    raw: bytes = b""
