"""Measured use of GPUs, as the live view shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct


class GpuUseQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Filter of GPUs: all of them, or those that the caller holds."""

    mine: Annotated[
        bool, Meta(description="Only GPUs that the caller's own benches and jobs hold.")
    ] = False


class GpuUse(Struct, frozen=True):
    """Latest measurement of one GPU. Values that were not measured are null.

    Every user sees the measurements. The holder is null for readers who may not see it.

    Attributes:
        at: End of the newest sample. It and all measured values are null if the sample is older
            than a few ticks.
        span_s: Length of the sample, in seconds.
        activity: Share of the sample in which a kernel ran, 0 to 1.
        sm_activity: Mean share of active multiprocessors.
        idle_since: Start of the time in which its holder had no sample above 1 %; null while it is
            active.
        throttled: Reasons why it runs below its full speed.
        xid: Error code of the driver in the sample.
        simulated: Its activity follows the processor use of its holder; nothing computes on it.
        mine: Held by a bench or job of the caller.
        parent: The driver's name of the GPU that it is a slice of. Power is measured for whole GPUs
            only.
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
