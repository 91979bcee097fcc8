"""Audit records for benches that are stopped, released or parked: whose, why, and the numbers."""

from __future__ import annotations

from benchpool_scheduler.contract.idle_benches import BenchAct
from benchpool_scheduler.phrases import duration, percent
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.audit_trail import AuditEvent, AuditTrail
from benchpool_scheduler.service.administration.preemption_trail import POOL
from benchpool_scheduler.service.benches.idle.acting import BenchGiven

RULE = "idle_benches"
"""Section of the configuration with the rule."""

ACTIONS = {
    (BenchAct.STOP, False): "bench-stop",
    (BenchAct.STOP, True): "bench-stopped",
    (BenchAct.RELEASE, False): "bench-release",
    (BenchAct.RELEASE, True): "bench-released",
    (BenchAct.PARK, False): "bench-park",
    (BenchAct.PARK, True): "bench-parked",
}
"""Audit actions by (act, done). In a done record, ``gpus_seen_free`` states whether the pool itself
saw the GPUs free.
"""


class BenchTrail:
    """Writer of audit records about idle benches."""

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail

    def given(self, one: BenchGiven) -> None:
        """Record an act, without waiting for the disk.

        The start of an act that the owner requested is skipped: the request is in the trail
        already.
        """
        if one.done or not one.asked:
            self._trail.record_soon(_deed(one))


def _deed(one: BenchGiven) -> AuditEvent:
    reason = (
        f"idle for {duration(one.idle_s)}, {percent(one.coverage)} of it measured; the rule "
        f"reclaims after {duration(one.act_s)}"
    )
    return AuditEvent(
        Caller(one.lease.user) if one.asked else POOL,
        "",
        ACTIONS[one.act, one.done],
        one.lease.id,
        reason="its owner releases it" if one.asked else reason,
        after={
            "rule": "owner" if one.asked else RULE,
            "user": one.lease.user,
            "server": one.lease.server,
            "gpus": len(one.lease.gpus),
            "idle_s": round(one.idle_s, 1),
            "coverage": round(one.coverage, 3),
            **({"gpus_seen_free": one.looked} if one.done and one.act is not BenchAct.PARK else {}),
        },
    )
