"""The operations on notifications: what the caller is told outside of pages, and where."""

from __future__ import annotations

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.notifications import (
    NotificationChange,
    NotificationSettings,
    SiteKinds,
)
from benchpool_scheduler.contract.operation import Given, Who, given, operation

TEST_S = 60.0
"""All addresses are tried once."""


class NotificationOperations:
    """What the caller is told by mail, chat and webhook."""

    @operation(
        "GET",
        "notifications",
        NotificationSettings,
        verb=PlainVerb(
            ("notifications",),
            "List what you are told by mail, chat or webhook, and where.",
            "Addresses and events are chosen on the page Notifications.",
        ),
    )
    def notifications(self) -> Given:
        """Read what the caller is told outside of pages, and where."""
        return given()

    @operation("PATCH", "notifications", NotificationSettings, body=NotificationChange)
    def change_notifications(self, change: NotificationChange) -> Given:
        """Change what the caller is told, and where.

        Addresses are answered without what is secret in them.
        """
        return given(change)

    @operation(
        "POST",
        "notifications/test",
        NotificationSettings,
        takes_s=TEST_S,
        verb=PlainVerb(
            ("notifications", "test"),
            "Send a message to all your addresses now, and say which it reached.",
        ),
    )
    def test_notifications(self) -> Given:
        """Send a message to all addresses of the caller."""
        return given(takes_s=TEST_S)

    @operation(
        "POST",
        "notifications/reload",
        SiteKinds,
        who=Who.ADMIN,
        verb=PlainVerb(
            ("notifications", "reload"),
            "Read `notifications.yaml` again and put it in force.",
            "A file that is wrong is refused with line and key, and what was in force stays.",
        ),
    )
    def reload_notifications(self) -> Given:
        """Read `notifications.yaml` again; what is wrong is refused, and the old one stays."""
        return given()
