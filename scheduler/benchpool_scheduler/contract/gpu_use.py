"""What GPUs really do, as the live picture shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct


class GpuUseQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which GPUs: all, or those that the caller holds."""

    mine: Annotated[
        bool, Meta(description="Only GPUs that the caller's own benches and jobs hold.")
    ] = False


class GpuUse(Struct, frozen=True):
    """One GPU as it was measured last; what was not measured is null.

    Everybody sees what GPUs do; who holds one is null for readers who may not see that.

    Attributes:
        at: End of the newest sample; null where none is newer than a few ticks, as all that
            follows from it. ``span_s``: its length.
        activity: Share of the sample in which a kernel ran, 0 to 1; ``sm_activity``: mean share of
            the multiprocessors at work.
        idle_since: Since when its holder has had it without a sample above one per cent; null while
            it is active.
        throttled: Why it runs slower than it could. ``xid``: the driver's error in the sample.
        simulated: Its activity follows the processor use of its holder; nothing computes on it.
        mine: Held by a bench or job of the caller.
        parent: The driver's name of the GPU that it is a slice of; power is of whole GPUs alone.
    """

    uuid: str
    index: int
    model: str
    node: str
    simulated: bool
    mine: bool = False
    at: datetime | None = None
    span_s: float | None = None
    activity: float | None = None
    sm_activity: float | None = None
    memory_used_gib: float | None = None
    memory_total_gib: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttled: list[str] = []
    xid: int | None = None
    idle_since: datetime | None = None
    user: str | None = None
    project: str | None = None
    job: str | None = None
    worker: int | None = None
    server: str | None = None
    parent: str | None = None
