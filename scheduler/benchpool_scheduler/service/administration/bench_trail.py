"""Every bench that is given back as a record of the audit trail: whose, why, by which numbers."""

from __future__ import annotations

from benchpool_scheduler.contract.idle_benches import BenchAct
from benchpool_scheduler.phrases import duration, percent
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.audit_trail import AuditEvent, AuditTrail
from benchpool_scheduler.service.administration.preemption_trail import POOL
from benchpool_scheduler.service.benches.idle.acting import BenchGiven

RULE = "idle_benches"
"""The section of the configuration by which it happens."""

ACTIONS = {
    (BenchAct.STOP, False): "bench-stop",
    (BenchAct.STOP, True): "bench-stopped",
    (BenchAct.RELEASE, False): "bench-release",
    (BenchAct.RELEASE, True): "bench-released",
    (BenchAct.PARK, False): "bench-park",
    (BenchAct.PARK, True): "bench-parked",
}
"""What begins, and what is over: by our own look at the GPUs, if ``gpus_seen_free`` says so."""


class BenchTrail:
    """Writes what was given back."""

    def __init__(self, trail: AuditTrail) -> None:
        self._trail = trail

    def given(self, one: BenchGiven) -> None:
        """Write an act, without waiting for the disk.

        What an owner asks for stands in the trail already, as everything that is asked for.
        """
        if one.done or not one.asked:
            self._trail.tell(_deed(one))


def _deed(one: BenchGiven) -> AuditEvent:
    reason = (
        f"idle for {duration(one.idle_s)}, {percent(one.coverage)} of it measured; the rule gives "
        f"back after {duration(one.act_s)}"
    )
    return AuditEvent(
        Caller(one.lease.user) if one.asked else POOL,
        "",
        ACTIONS[one.act, one.done],
        one.lease.id,
        reason="its owner gives it back" if one.asked else reason,
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
