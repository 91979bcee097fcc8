"""Every preemption as a record of the audit trail: who had to give way, for whom, by which rule."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.core.model import Preempt
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.audit_trail import AuditEvent, AuditTrail
from benchpool_scheduler.service.ledger.ledger import Ledger

POOL = Caller("benchpool", kind="service")
"""Who acts when nobody asked: the pool itself, by its rules."""


class PreemptionTrail:
    """Writes what passes have preempted."""

    def __init__(self, ledger: Ledger, trail: AuditTrail) -> None:
        self._ledger = ledger
        self._trail = trail

    def preempted(self, commands: Sequence[Preempt]) -> None:
        """Write what was just committed, without waiting for the disk."""
        for one in commands:
            self._trail.tell(self._deed(one))

    def _deed(self, one: Preempt) -> AuditEvent:
        victim = self._ledger.job(one.job)
        claimant = None if one.claimant is None else self._ledger.job(one.claimant)
        reason = "benches get their GPUs" if claimant is None else f"room for job {claimant.name}"
        whose = {} if victim is None else {"user": victim.user, "project": victim.project}
        by = {} if claimant is None else {"for": claimant.id, "for_user": claimant.user}
        return AuditEvent(
            POOL,
            "",
            "preempt",
            one.job,
            reason=f"{reason} ({one.rule})",
            after={
                "rule": one.rule,
                "gpus": sum(len(worker.gpus) for worker in one.workers),
                **whose,
                **by,
                "lost_gpu_s": round(one.lost_gpu_s, 1),
            },
        )
