"""Operations on the audit trail."""

from __future__ import annotations

from datetime import datetime

from benchpool_scheduler.contract.audit import (
    AuditCheck,
    AuditOutcome,
    AuditPage,
    AuditQuery,
    AuditVerifyQuery,
    LoginReport,
)
from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.operation import Given, Who, given, operation

AUDIT_S = 120.0
"""Timeout for reading and hashing the whole trail of a year, in seconds."""


class AuditOperations:
    """Audit trail: who did what."""

    @operation("GET", "audit", AuditPage, who=Who.ADMIN, query=AuditQuery)
    def audit(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        search: str | None = None,
        events: bool = False,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        outcome: AuditOutcome | None = None,
        below: int | None = None,
        limit: int | None = None,
    ) -> Given:
        """Read the audit trail.

        Records of who did what, from where and why, newest first.
        """
        query = {
            "since": since,
            "until": until,
            "search": search,
            "events": events or None,
            "actor": actor,
            "action": action,
            "target": target,
            "outcome": outcome,
            "below": below,
            "limit": limit,
        }
        return given(query=query)

    @operation(
        "GET",
        "audit/verify",
        AuditCheck,
        who=Who.ADMIN,
        query=AuditVerifyQuery,
        takes_s=AUDIT_S,
        verb=PlainVerb(
            ("audit", "verify"),
            "Verify the hashes of the whole audit trail: no record was changed or removed.",
            "Keep the printed number and hash elsewhere and pass them the next time. That also "
            "detects missing newest records and a rewritten trail.",
        ),
    )
    def verify_audit(self, number: int | None = None, hash: str | None = None) -> Given:
        """Verify the hash chain of the whole audit trail."""
        return given(query={"number": number, "hash": hash}, takes_s=AUDIT_S)

    @operation(
        "POST",
        "audit/logins",
        type(None),
        who=Who.OPERATOR,
        body=LoginReport,
        changes=False,
        statuses={204: "Recorded."},
    )
    def report_login(self, report: LoginReport) -> Given:
        """Report a login or a logout, for the Hub."""
        return given(report)
