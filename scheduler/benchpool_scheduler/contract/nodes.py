"""Nodes of the pool: whether they accept starts, and the settings of administrators."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

DAY_S = 86_400

Reason = Annotated[
    str,
    Meta(min_length=1, max_length=200, description="Short reason, shown to waiting users."),
]


class NodeIntake(StrEnum):
    """Intake of a node: whether it accepts starts."""

    OPEN = "open"
    DRAINING = "draining"
    """An administrator has drained the node. Nothing starts there until it is opened."""
    MAINTENANCE = "maintenance"
    """The maintenance window of the node has begun."""
    NOT_READY = "not-ready"
    """The node is unreachable, cordoned or faulty."""


class NodeReason(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``drain_node``: the reason."""

    reason: Reason


class NodeOpened(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``open_node``: the reason."""

    reason: Annotated[str, Meta(max_length=200, description="Reason, for the audit trail.")] = ""


class NodeNote(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``note_node``; an empty text removes the note."""

    text: Annotated[
        str, Meta(max_length=500, description="Note for users; an empty text removes it.")
    ] = ""


class NodeWindow(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``maintain_node``; the new window replaces the present one."""

    begins: Annotated[datetime, Meta(tz=True, description="Start of the window.")]
    lasts_s: Annotated[int, Meta(ge=60, le=90 * DAY_S, description="Length, in seconds.")]
    reason: Reason


class MaintenanceWindow(Struct, frozen=True):
    """Time in which nothing starts on a node; ``by`` is the administrator who set it."""

    begins: datetime
    ends: datetime
    reason: str
    by: str


class PoolNode(Struct, frozen=True):
    """Node of the pool.

    ``text`` is its intake in a sentence. ``held`` of its ``gpus`` are in use by ``jobs`` jobs and
    ``benches`` notebook servers. ``since``, ``by`` and ``reason`` belong to a drain. ``unfinished``
    is the number of running jobs that may run past the start of its maintenance window.
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
