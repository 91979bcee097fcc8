"""What the newest pass said: kept in memory only, another value after every pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchpool_scheduler.core.model import GpuId, JobId, Share, WaitReason


@dataclass(frozen=True, slots=True)
class LatestPass:
    """Reasons, shares and GPUs over quota as of the newest pass.

    Attributes:
        quarantined: Jobs that no pass looks at because the core cannot take them, each with a
            sentence.
        passes: Number of passes since the start. ``last_pass_s``: how long the newest took;
            ``pass_s``: how long all took together.
    """

    reasons: Mapping[JobId, WaitReason] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    over_quota: Mapping[JobId, frozenset[GpuId]] = field(default_factory=dict)
    quarantined: Mapping[str, str] = field(default_factory=dict)
    passes: int = 0
    last_pass_s: float = 0.0
    pass_s: float = 0.0
