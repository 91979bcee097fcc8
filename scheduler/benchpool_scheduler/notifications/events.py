"""What people can be told, as one literal table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from benchpool_scheduler.contract.notifications import NotificationEvent


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event.

    Attributes:
        words: As people choose it.
        hears: Who may be told: the job's owner; whom a budget concerns: that user, or the leads of
            that project; administrators.
        usual: Whether it is told to whoever has chosen nothing.
    """

    words: str
    hears: Literal["owner", "concerned", "administrators"]
    usual: bool


EVENTS: Mapping[NotificationEvent, EventKind] = {
    NotificationEvent.STARTED: EventKind("A job started after a long wait", "owner", True),
    NotificationEvent.ENDED: EventKind(
        "A job ended well, or somebody else cancelled it", "owner", True
    ),
    NotificationEvent.FAILED: EventKind("A job failed", "owner", True),
    NotificationEvent.PAUSED: EventKind(
        "A job has been paused for long, and not by me", "owner", True
    ),
    NotificationEvent.BUDGET: EventKind(
        "A budget of GPU-hours is used up: mine, or that of a project that I lead",
        "concerned",
        True,
    ),
    NotificationEvent.GPU_BROKEN: EventKind("A GPU is broken", "administrators", True),
}


@dataclass(frozen=True, slots=True)
class Message:
    """One thing to be told.

    Attributes:
        id: The same whenever the same thing is told again, so that a repeat does no harm.
        at: When it happened, epoch seconds.
        path: The page that says more, below the service's address; empty for none.
    """

    id: str
    event: NotificationEvent
    at: float
    text: str
    path: str = ""


def usual(*, admin: bool) -> tuple[NotificationEvent, ...]:
    """Return what somebody is told who has chosen nothing.

    >>> [str(one) for one in usual(admin=False)]
    ['started', 'ended', 'failed', 'paused', 'budget']
    """
    return tuple(one for one in offered(admin=admin) if EVENTS[one].usual)


def offered(*, admin: bool) -> tuple[NotificationEvent, ...]:
    """Return what somebody may choose."""
    return tuple(one for one, kind in EVENTS.items() if admin or kind.hears != "administrators")
