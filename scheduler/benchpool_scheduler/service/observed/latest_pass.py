"""Results of the newest pass, in memory only and replaced after each pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchpool_scheduler.core.model import GpuId, JobId, Share, WaitReason


@dataclass(frozen=True, slots=True)
class LatestPass:
    """Reasons, shares and GPUs over quota as of the newest pass.

    Attributes:
        quarantined: Jobs that passes leave out because the core rejects them, each with the cause.
        passes: Number of passes since the start. ``last_pass_s``: duration of the newest one in
            seconds. ``pass_s``: total duration of all in seconds.
    """

    reasons: Mapping[JobId, WaitReason] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    over_quota: Mapping[JobId, frozenset[GpuId]] = field(default_factory=dict)
    quarantined: Mapping[str, str] = field(default_factory=dict)
    passes: int = 0
    last_pass_s: float = 0.0
    pass_s: float = 0.0
