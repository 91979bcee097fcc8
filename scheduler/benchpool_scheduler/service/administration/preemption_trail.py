"""Audit records for preemptions: the victim, the claimant and the rule."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.core.model import Preempt
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.audit_trail import AuditEvent, AuditTrail
from benchpool_scheduler.service.ledger.ledger import Ledger

POOL = Caller("benchpool", kind="service")
"""Caller for actions of the pool itself, which no user requested."""


class PreemptionTrail:
    """Writer of audit records about preemptions."""

    def __init__(self, ledger: Ledger, trail: AuditTrail) -> None:
        self._ledger = ledger
        self._trail = trail

    def preempted(self, commands: Sequence[Preempt]) -> None:
        """Record committed preemptions, without waiting for the disk."""
        for one in commands:
            self._trail.record_soon(self._deed(one))

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
