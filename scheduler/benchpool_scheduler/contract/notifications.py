"""Notifications of a user: the selected events and the addresses."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

LEAST_SECRET = 16
MOST_S = 30 * 86400


class NotificationEvent(StrEnum):
    """Events that users can be notified of."""

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
        description="Secret of a webhook, with which its messages are signed.",
    ),
]
Wait = Annotated[int, Meta(ge=0, le=MOST_S, description="Wait in the queue, in seconds.")]
Pause = Annotated[int, Meta(ge=60, le=MOST_S, description="Length of a pause, in seconds.")]


class NewAddress(Struct, frozen=True, forbid_unknown_fields=True):
    """Additional address for notifications. Answers never contain the whole address again."""

    url: Url
    secret: Secret | None = None


class NotificationChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Changed notification settings. Fields left out stay as they are.

    ``remove`` is the id of an address. ``wait_s`` and ``paused_s`` are those of
    ``NotificationSettings``.
    """

    add: NewAddress | None = None
    remove: Annotated[str, Meta(max_length=40)] | None = None
    events: Annotated[list[NotificationEvent], Meta(max_length=20)] | None = None
    wait_s: Wait | None = None
    paused_s: Pause | None = None


class NotificationAddress(Struct, frozen=True):
    """Address for notifications; ``shown`` is the address without its secret parts.

    ``reached`` is when a message was last delivered. ``failed`` is why the newest delivery failed.
    """

    id: str
    shown: str
    reached: datetime | None = None
    failed: str | None = None


class NotificationSettings(Struct, frozen=True):
    """Notification settings of a user.

    A start is reported if the job waited longer than ``wait_s``, a pause once it has lasted for
    ``paused_s``. ``kinds`` are the kinds of addresses that the administrator allows. It is empty
    where users get no notifications, and ``off`` then states it. ``own`` is the mail address that
    the site has for this user.
    """

    addresses: list[NotificationAddress]
    events: list[NotificationEvent]
    wait_s: int
    paused_s: int
    kinds: list[str]
    own: str | None = None
    off: str | None = None


class SiteKinds(Struct, frozen=True):
    """``notifications.yaml`` in force; ``changed`` is whether it differs from before.

    ``kinds`` are the kinds of addresses that users may add. ``pool`` is the number of the site's
    own addresses.
    """

    changed: bool
    kinds: list[str]
    pool: int
