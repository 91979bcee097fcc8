"""Audit trail: who did what, from where and why, with the values before and after."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

Scalar = str | int | float | bool | None


class AuditOutcome(StrEnum):
    """Outcome of an audited request."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"  # an internal error: the action may have been done


class AuditRecord(Struct, frozen=True, kw_only=True):
    """Record of the audit trail.

    Attributes:
        number: Place in the trail; each record has the number of the previous one plus one.
        actor: The Hub's name of the actor; empty where the Hub knows none.
        kind: ``service`` for the Hub and its services.
        address: Address that the request came from.
        action: The operation's name, or ``login``, ``logout``, ``audit-begun``, ``refusals`` or
            ``preempt``. The actor of ``preempt`` is ``benchpool``, and its ``after`` has the
            ``rule``.
        target: The job, lease or user that the action was about.
        code: Code of a refusal.
        reason: Reason that the actor gave, or the sentence of a refusal.
        before, after: Changed fields with their values before and after the action.
        previous: Hash of the previous record.
        hash: SHA-256 of this record, with ``previous`` and without the hash.
    """

    number: int
    at: datetime
    actor: str
    kind: Literal["user", "service"] = "user"
    admin: bool = False
    address: str = ""
    action: str
    target: str = ""
    outcome: AuditOutcome = AuditOutcome.DONE
    code: str = ""
    reason: str = ""
    before: dict[str, Scalar] = {}
    after: dict[str, Scalar] = {}
    previous: str = ""
    hash: str = ""


class AuditQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Filter of audit records, newest first. ``below`` continues after an answer with ``more``."""

    since: Annotated[datetime, Meta(tz=True, description="Records from this time on.")] | None = (
        None
    )
    until: Annotated[datetime, Meta(tz=True, description="Records before this time.")] | None = None
    search: (
        Annotated[str, Meta(max_length=255, description="Records that contain this text.")] | None
    ) = None
    events: Annotated[
        bool, Meta(description="Only completed actions, without logins and refusals.")
    ] = False
    actor: (
        Annotated[str, Meta(max_length=255, description="Records of this user or service.")] | None
    ) = None
    action: Annotated[str, Meta(max_length=64, description="Name of an operation.")] | None = None
    target: (
        Annotated[str, Meta(max_length=255, description="Records about this job, lease or user.")]
        | None
    ) = None
    outcome: Annotated[AuditOutcome, Meta(description="Records with this outcome.")] | None = None
    below: Annotated[int, Meta(ge=1, description="Records below this number.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=5000, description="Maximum number of records.")] = 200


class AuditPage(Struct, frozen=True):
    """Answer of ``audit``, newest record first. ``more`` is whether older records match."""

    records: list[AuditRecord]
    more: bool


class AuditVerifyQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Record noted elsewhere, by ``number`` and ``hash``. It must still be in the trail."""

    number: Annotated[int, Meta(ge=1, description="Number of a record noted earlier.")] | None = (
        None
    )
    hash: (
        Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="Hash of that record.")] | None
    ) = None


class AuditCheck(Struct, frozen=True):
    """Answer of ``audit verify``.

    ``first`` and ``last`` are the numbers of the oldest and newest record that is kept. ``hash`` is
    that of the newest. ``problem`` states where the chain breaks, null when it holds.
    """

    ok: bool
    first: int
    last: int
    hash: str
    problem: str | None


class LoginReport(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of the Hub's report of a login or a logout."""

    user: Annotated[str, Meta(max_length=255)]
    outcome: AuditOutcome
    way: Annotated[str, Meta(max_length=64, description="Login method, such as link or password.")]
    address: Annotated[str, Meta(max_length=64)] = ""
    action: Literal["login", "logout"] = "login"
