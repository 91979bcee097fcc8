"""Output of the audit trail."""

from __future__ import annotations

from benchpool_scheduler import phrases
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract import AuditCheck, AuditPage
from benchpool_scheduler.contract.audit import AuditOutcome, AuditRecord

AUDIT_COLUMNS = (
    Column("AT"),
    Column("ACTOR", width=14),
    Column("WHAT", rest=True, wrap=True),
)


def audit(screen: Screen, page: AuditPage) -> None:
    """Print audit records, newest first."""
    if not page.records:
        screen.line("No matching audit records.")
        return
    screen.table(
        AUDIT_COLUMNS,
        [
            (
                one.at.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
                one.actor or "(unknown)",
                _what(one),
            )
            for one in page.records
        ],
    )
    if page.more:
        screen.aside("There are older records. Narrow the filter, or raise --limit.")


def _what(one: AuditRecord) -> str:
    """Return action, target, outcome and changes in one cell, because four columns are too wide."""
    outcome = "" if one.outcome is AuditOutcome.DONE else f" {one.outcome.value}"
    act = " ".join(part for part in (one.action, one.target) if part) + outcome
    changed = phrases.changed(one.before, one.after, one.reason)
    return f"{act}: {changed}" if changed else act


def audit_check(screen: Screen, check: AuditCheck) -> None:
    """Print whether the chain of audit records is intact."""
    if check.problem is not None:
        screen.line(f"The audit trail is not intact: {check.problem}")
    elif not check.last:
        screen.line("The audit trail is empty.")
    else:
        screen.line(f"The audit trail is intact: records {check.first} to {check.last}.")
        screen.line("To detect removed records later, keep this command and run it then:")
        screen.line(f"benchpool audit verify --number {check.last} --hash {check.hash}")
