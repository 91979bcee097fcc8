"""Kinds of notifications, as one literal table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from benchpool_scheduler.contract.notifications import NotificationEvent


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event.

    Attributes:
        words: Its description in the settings.
        recipients: The job's owner; the user or the leads of the project that a budget or bench
            concerns; or administrators.
        usual: Whether it is sent by default.
    """

    words: str
    recipients: Literal["owner", "concerned", "administrators"]
    usual: bool


EVENTS: Mapping[NotificationEvent, EventKind] = {
    NotificationEvent.STARTED: EventKind("A job started after a long wait", "owner", True),
    NotificationEvent.ENDED: EventKind(
        "A job succeeded, or another user cancelled it", "owner", True
    ),
    NotificationEvent.FAILED: EventKind("A job failed", "owner", True),
    NotificationEvent.PAUSED: EventKind(
        "A job has been paused for long, and not by me", "owner", True
    ),
    NotificationEvent.HANGING: EventKind("A job of mine hangs", "owner", True),
    NotificationEvent.DEADLINE: EventKind(
        "A job of mine will miss its deadline, or has missed it", "owner", True
    ),
    NotificationEvent.SCHEDULE: EventKind(
        "A schedule of mine sent no job because it was refused, or another user paused it",
        "owner",
        True,
    ),
    NotificationEvent.IDLE_BENCH: EventKind(
        "A bench of mine is idle, and may be released", "concerned", True
    ),
    NotificationEvent.BUDGET: EventKind(
        "A budget of GPU-hours, mine or of a project that I lead, is nearly used, used up, or past "
        "its soft limit",
        "concerned",
        True,
    ),
    NotificationEvent.GPU_BROKEN: EventKind("A GPU is broken", "administrators", True),
}


@dataclass(frozen=True, slots=True)
class Message:
    """Content of one notification.

    Attributes:
        id: The same for each repetition, so that repeated sending does no harm.
        at: Time of the event, epoch seconds.
        path: Page with details, below the service's address; empty for none.
    """

    id: str
    event: NotificationEvent
    at: float
    text: str
    path: str = ""


def usual(*, admin: bool) -> tuple[NotificationEvent, ...]:
    """Return the default events of a user without a selection.

    >>> [str(one) for one in usual(admin=False)][:6]
    ['started', 'ended', 'failed', 'paused', 'hanging', 'deadline']
    """
    return tuple(one for one in offered(admin=admin) if EVENTS[one].usual)


def offered(*, admin: bool) -> tuple[NotificationEvent, ...]:
    """Return the events that a user may select."""
    return tuple(
        one for one, kind in EVENTS.items() if admin or kind.recipients != "administrators"
    )
