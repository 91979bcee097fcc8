"""Operations on notifications: the caller's events and addresses."""

from __future__ import annotations

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.notifications import (
    NotificationChange,
    NotificationSettings,
    SiteKinds,
)
from benchpool_scheduler.contract.operation import Given, Who, given, operation

TEST_S = 60.0
"""Timeout for trying all addresses once, in seconds."""


class NotificationOperations:
    """Notifications of the caller by mail, chat and webhook."""

    @operation(
        "GET",
        "notifications",
        NotificationSettings,
        verb=PlainVerb(
            ("notifications",),
            "List your notifications by mail, chat or webhook: events and addresses.",
            "Select events and addresses on the page Notifications.",
        ),
    )
    def notifications(self) -> Given:
        """Read the caller's notification settings."""
        return given()

    @operation("PATCH", "notifications", NotificationSettings, body=NotificationChange)
    def change_notifications(self, change: NotificationChange) -> Given:
        """Change the caller's notification settings.

        Answers show addresses without their secret parts.
        """
        return given(change)

    @operation(
        "POST",
        "notifications/test",
        NotificationSettings,
        takes_s=TEST_S,
        verb=PlainVerb(
            ("notifications", "test"),
            "Send a message to all your addresses, and show which it reached.",
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
            "Reload `notifications.yaml`.",
            "An invalid file is refused with line and key. The previous settings stay in force.",
        ),
    )
    def reload_notifications(self) -> Given:
        """Reload `notifications.yaml`; an invalid file is rejected and changes nothing."""
        return given()
