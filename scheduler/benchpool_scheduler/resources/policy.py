"""Policy section of ``PoolSettings``: pool-wide settings as an object."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.resources.declaring import Amount, Seconds


class PolicySpec(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={
        "grace_s": "graceSeconds",
        "min_runtime_s": "minRuntimeSeconds",
        "preemptions_per_hour": "preemptionsPerHour",
        "preemptions_per_day": "preemptionsPerDay",
        "usage_half_life_h": "usageHalfLifeHours",
        "usage_weight": "usageWeight",
        "restart_s": "restartSeconds",
        "long_run_s": "longRunSeconds",
        "claim_delay_s": "claimDelaySeconds",
    },
):
    """Pool-wide settings. A missing value has benchpool's default."""

    grace_s: Seconds | None = None
    min_runtime_s: Seconds | None = None
    preemptions_per_hour: Annotated[int, Meta(ge=0, le=3600)] | None = None
    preemptions_per_day: Annotated[int, Meta(ge=0, le=86_400)] | None = None
    usage_half_life_h: Annotated[float, Meta(ge=0.001, le=100_000)] | None = None
    usage_weight: Amount | None = None
    restart_s: Seconds | None = None
    long_run_s: Seconds | None = None
    claim_delay_s: Seconds | None = None
    oversubscribe: bool | None = None
