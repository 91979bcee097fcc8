"""The audit trail of the pool: what is recorded, and who may read it.

Changes are on disk before the request is answered. Refusals do not wait for the disk. At most 60
refusals a minute are recorded singly per caller, and the rest is counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from benchpool_scheduler.contract.audit import (
    AuditCheck,
    AuditOutcome,
    AuditPage,
    AuditQuery,
    AuditRecord,
    AuditVerifyQuery,
    LoginReport,
    Scalar,
)
from benchpool_scheduler.phrases import visible
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.audit_files import AuditFiles

log = logging.getLogger(__name__)

DAY_S = 24 * 3600.0

REFUSALS_A_MINUTE = 60
"""Limit of refusals a minute recorded singly per caller; requests without a user share it."""

LONGEST = 500
"""Maximum length of reasons and values, in characters; longer ones are cut."""

_PROBLEM = "audit"
DAMAGED = "audit-damaged"
"""Action of the record, and topic of the problem, when a damaged part of the trail was set
aside.
"""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """An action or an attempt, with its caller and outcome."""

    caller: Caller
    address: str
    action: str
    target: str = ""
    outcome: AuditOutcome = AuditOutcome.DONE
    code: str = ""
    reason: str = ""
    before: Mapping[str, Scalar] | None = None
    after: Mapping[str, Scalar] | None = None


class AuditTrail:
    """Record of who did what, from where and why; readable by administrators."""

    def __init__(self, observed: SchedulerState, files: AuditFiles) -> None:
        self._observed = observed
        self._files = files
        self._minute = 0
        self._refusals: Counter[str] = Counter()
        self._later: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Open the files; report a problem if the trail cannot be written."""
        try:
            await self._files.open()
        except OSError as failed:
            self._report_unwritable(failed)
        self._report_damage()

    async def close(self) -> None:
        """Write the pending records and close the files."""
        await asyncio.gather(*self._later, return_exceptions=True)
        await self._files.close()

    async def record(self, deed: AuditEvent) -> None:
        """Record an action; it is on disk when this returns, or a problem is reported."""
        self._files.keep_s = self._observed.now.configuration.retention.audit_days * DAY_S
        try:
            await self._files.append(self._record(deed))
        except OSError as failed:
            self._report_unwritable(failed)
        else:
            self._observed.report(_PROBLEM, None)
        self._report_damage()

    def _report_damage(self) -> None:
        """Record and report the damaged parts that were set aside."""
        found, self._files.damage = self._files.damage, []
        for sentence in found:
            self._soon(
                AuditEvent(Caller("benchpool", kind="service"), "", DAMAGED, reason=sentence)
            )
            self._observed.report(DAMAGED, f"The audit trail was damaged: {sentence}.")

    def record_soon(self, deed: AuditEvent) -> None:
        """Record an automatic action of the pool, without waiting for the disk."""
        self._soon(deed)

    def note(self, deed: AuditEvent) -> None:
        """Record a refusal, without waiting for the disk."""
        self._begin_minute()
        self._refusals[deed.caller.name] += 1
        if self._refusals[deed.caller.name] <= REFUSALS_A_MINUTE:
            self._soon(deed)

    async def login(self, report: LoginReport) -> None:
        """Record a login or logout that the Hub reports."""
        who = Caller(report.user if report.outcome is AuditOutcome.DONE else "")
        deed = AuditEvent(
            who, report.address, report.action, report.user, report.outcome, reason=report.way
        )
        if report.outcome is AuditOutcome.DONE:
            await self.record(deed)
        else:
            self.note(deed)

    async def read(self, caller: Caller, query: AuditQuery) -> AuditPage:
        """Return records, newest first. Errors: Forbidden for non-administrators."""
        rights.require_admin(caller, "read the audit trail")
        await asyncio.gather(*self._later, return_exceptions=True)  # include the latest refusals
        return await asyncio.to_thread(self._files.read, query)

    async def verify(self, caller: Caller, query: AuditVerifyQuery) -> AuditCheck:
        """Verify the whole chain. Errors: Forbidden for non-administrators."""
        rights.require_admin(caller, "verify the audit trail")
        return await asyncio.to_thread(self._files.verify, query.number, query.hash)

    def _begin_minute(self) -> None:
        """When a new minute begins, record for each actor how many refusals were only counted."""
        minute = int(self._observed.settings.clock.now() // 60)
        if minute == self._minute:
            return
        counted, self._minute, self._refusals = self._refusals, minute, Counter()
        for actor, number in counted.items():
            if (more := number - REFUSALS_A_MINUTE) > 0:
                sentence = f"{more} more refusals within one minute"
                self._soon(
                    AuditEvent(
                        Caller(actor),
                        "",
                        "refusals",
                        outcome=AuditOutcome.REFUSED,
                        reason=sentence,
                        after={"refusals": more},
                    )
                )

    def _soon(self, deed: AuditEvent) -> None:
        task = asyncio.get_running_loop().create_task(self.record(deed))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def _record(self, deed: AuditEvent) -> AuditRecord:
        caller = deed.caller
        return AuditRecord(
            number=0,
            at=datetime.fromtimestamp(self._observed.settings.clock.now(), UTC),
            actor=visible(caller.name),
            kind="user" if caller.kind == "user" else "service",
            admin=caller.admin,
            address=deed.address,
            action=deed.action,
            target=visible(deed.target),
            outcome=deed.outcome,
            code=deed.code,
            reason=visible(deed.reason[:LONGEST]),
            before=_cut(deed.before),
            after=_cut(deed.after),
        )

    def _report_unwritable(self, failed: OSError) -> None:
        sentence = (
            f"The audit trail in {self._files.folder} cannot be written "
            f"({failed.strerror or failed}): current actions are not recorded. Free space there, "
            "or make it writable."
        )
        log.warning("%s", sentence)
        self._observed.report(_PROBLEM, sentence)


def _cut(values: Mapping[str, Scalar] | None) -> dict[str, Scalar]:
    return {
        name: visible(value[:LONGEST]) if isinstance(value, str) else value
        for name, value in (values or {}).items()
    }
