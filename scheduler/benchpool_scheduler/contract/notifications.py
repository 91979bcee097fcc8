"""What somebody wants to be told outside of pages, and where."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

LEAST_SECRET = 16
MOST_S = 30 * 86400


class NotificationEvent(StrEnum):
    """What people can be told of."""

    STARTED = "started"
    ENDED = "ended"
    FAILED = "failed"
    PAUSED = "paused"
    HANGING = "hanging"
    DEADLINE = "deadline"
    SCHEDULE = "schedule"
    IDLE_BENCH = "idle-bench"
    BUDGET = "budget"
    GPU_BROKEN = "gpu-broken"


Url = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=1000,
        description="A mail address, an https:// address that takes webhooks, or an address of a "
        "kind that the administrator allows, such as slack://….",
    ),
]
Secret = Annotated[
    str,
    Meta(
        min_length=LEAST_SECRET,
        max_length=200,
        description="Of a webhook: what its messages are signed with.",
    ),
]
Wait = Annotated[int, Meta(ge=0, le=MOST_S, description="Seconds in line.")]
Pause = Annotated[int, Meta(ge=60, le=MOST_S, description="Seconds of a pause.")]


class NewAddress(Struct, frozen=True, forbid_unknown_fields=True):
    """Where messages are to go, too; it is never answered whole again."""

    url: Url
    secret: Secret | None = None


class NotificationChange(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to change; what is left out stays as it is.

    ``remove`` is the id of an address. ``wait_s`` and ``paused_s`` as in ``NotificationSettings``.
    """

    add: NewAddress | None = None
    remove: Annotated[str, Meta(max_length=40)] | None = None
    events: Annotated[list[NotificationEvent], Meta(max_length=20)] | None = None
    wait_s: Wait | None = None
    paused_s: Pause | None = None


class NotificationAddress(Struct, frozen=True):
    """Where messages go: ``shown`` is its address without what is secret.

    ``reached`` is when a message last arrived, ``failed`` why the newest one did not.
    """

    id: str
    shown: str
    reached: datetime | None = None
    failed: str | None = None


class NotificationSettings(Struct, frozen=True):
    """What somebody is told, and where.

    A start is told of after ``wait_s`` in line, a pause when it has lasted for ``paused_s``.
    ``kinds`` are the addresses that the administrator allows, none where nothing is sent to users:
    then ``off`` says so. ``own`` is the mail address that the site has for this user.
    """

    addresses: list[NotificationAddress]
    events: list[NotificationEvent]
    wait_s: int
    paused_s: int
    kinds: list[str]
    own: str | None = None
    off: str | None = None


class SiteKinds(Struct, frozen=True):
    """What is in force of ``notifications.yaml``; ``changed``: it is something else than before.

    ``kinds`` are the addresses that users may give, ``pool`` is how many the site has of its own.
    """

    changed: bool
    kinds: list[str]
    pool: int
