"""The machines of the pool: which take starts, and what administrators say of them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

DAY_S = 86_400

Reason = Annotated[
    str,
    Meta(min_length=1, max_length=200, description="Why, in a few words that waiting people read."),
]


class NodeIntake(StrEnum):
    """Whether a node takes starts."""

    OPEN = "open"
    DRAINING = "draining"
    """An administrator lets nothing start there until it is opened."""
    MAINTENANCE = "maintenance"
    """Its maintenance window has begun."""
    NOT_READY = "not-ready"
    """The machine itself: it is away, cordoned, or at fault."""


class NodeReason(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``drain_node``."""

    reason: Reason


class NodeOpened(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``open_node``."""

    reason: Annotated[str, Meta(max_length=200, description="Why, for the audit trail.")] = ""


class NodeNote(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``note_node``: an empty text takes the note away."""

    text: Annotated[
        str, Meta(max_length=500, description="What people should know of it; empty for nothing.")
    ] = ""


class NodeWindow(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``maintain_node``: it replaces the window that the node has."""

    begins: Annotated[datetime, Meta(tz=True, description="When it begins.")]
    lasts_s: Annotated[int, Meta(ge=60, le=90 * DAY_S, description="How long, in seconds.")]
    reason: Reason


class MaintenanceWindow(Struct, frozen=True):
    """A time in which nothing starts on a node; ``by`` is who set it."""

    begins: datetime
    ends: datetime
    reason: str
    by: str


class PoolNode(Struct, frozen=True):
    """One machine of the pool.

    ``text`` says in a sentence whether it takes starts. ``held`` of its ``gpus`` are in use by
    ``jobs`` jobs and ``benches`` notebook servers. ``since``, ``by`` and ``reason`` are those of a
    drain. ``unfinished`` jobs that run there may go on beyond the beginning of its window.
    """

    name: str
    intake: NodeIntake
    text: str
    gpus: int
    held: int
    jobs: int
    benches: int
    note: str = ""
    since: datetime | None = None
    by: str | None = None
    reason: str | None = None
    window: MaintenanceWindow | None = None
    unfinished: int = 0
