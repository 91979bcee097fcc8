"""The audit trail: who did what, from where, why, and what it was before and after."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

Scalar = str | int | float | bool | None


class AuditOutcome(StrEnum):
    """What became of it."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"  # a fault of ours: it may have been done


class AuditRecord(Struct, frozen=True, kw_only=True):
    """One record.

    Attributes:
        number: Its place in the trail; every one is one more than the one before.
        actor: The Hub's name of who asked; empty for nobody that the Hub knows. ``kind`` is
            ``service`` for the Hub and its services.
        address: Where the request came from.
        action: The operation's name, or ``login``, ``logout``, ``audit-begun``, ``refusals``, and
            ``preempt``, whose actor is ``benchpool`` and whose ``after`` has the ``rule``.
        target: The job, lease or user that it was about.
        reason: What the actor said why, or the sentence of a refusal; ``code`` is its code.
        before, after: What it changed, by field, as it was and as it is.
        previous: The hash of the record before.
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
    """Which records, the newest first; ``below`` goes on after an answer with ``more``."""

    since: Annotated[datetime, Meta(tz=True, description="Not older than this.")] | None = None
    until: Annotated[datetime, Meta(tz=True, description="Older than this.")] | None = None
    search: (
        Annotated[str, Meta(max_length=255, description="With this text anywhere in it.")] | None
    ) = None
    events: Annotated[
        bool, Meta(description="Only what was done, without logins and what was refused.")
    ] = False
    actor: Annotated[str, Meta(max_length=255, description="Of this user or service.")] | None = (
        None
    )
    action: Annotated[str, Meta(max_length=64, description="Of this operation.")] | None = None
    target: (
        Annotated[str, Meta(max_length=255, description="About this job, lease or user.")] | None
    ) = None
    outcome: Annotated[AuditOutcome, Meta(description="With this outcome.")] | None = None
    below: Annotated[int, Meta(ge=1, description="With smaller numbers than this.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=5000, description="At most so many.")] = 200


class AuditPage(Struct, frozen=True):
    """Answer of ``audit``: the newest first; ``more``: there are older ones of this kind."""

    records: list[AuditRecord]
    more: bool


class AuditVerifyQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """A record that was noted elsewhere, by ``number`` and ``hash``: it must still stand there."""

    number: Annotated[int, Meta(ge=1, description="Number of a record noted earlier.")] | None = (
        None
    )
    hash: (
        Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="Its hash, as it was noted.")]
        | None
    ) = None


class AuditCheck(Struct, frozen=True):
    """Answer of ``audit verify``.

    ``first`` and ``last`` are the numbers of the oldest and newest record that is kept, ``hash``
    that of the newest; ``problem`` says where the chain breaks, null when it holds.
    """

    ok: bool
    first: int
    last: int
    hash: str
    problem: str | None


class LoginReport(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of what the Hub tells about a login or a logout."""

    user: Annotated[str, Meta(max_length=255)]
    outcome: AuditOutcome
    way: Annotated[str, Meta(max_length=64, description="How: link, password, or another.")]
    address: Annotated[str, Meta(max_length=64)] = ""
    action: Literal["login", "logout"] = "login"
