"""Output of notification settings."""

from __future__ import annotations

from datetime import UTC, datetime

from benchpool_scheduler import phrases
from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract.notifications import NotificationSettings, SiteKinds

COLUMNS = (Column("ADDRESS", width=32), Column("REACHED"), Column("NEWEST MESSAGE", rest=True))


def settings(screen: Screen, found: NotificationSettings) -> None:
    """Print the caller's notification events and addresses."""
    if found.off is not None:
        screen.line(words.clean(found.off))
        return
    if not found.addresses:
        screen.line("You get no notifications yet. Add an address on the page Notifications.")
        return
    now = datetime.now(UTC)
    screen.table(
        COLUMNS,
        [
            (
                words.clean(one.shown),
                "never"
                if one.reached is None
                else phrases.ago((now - one.reached).total_seconds()),
                words.clean(one.failed or ("-" if one.reached is None else "arrived")),
            )
            for one in found.addresses
        ],
    )
    events = ", ".join(one.value for one in found.events) or "nothing"
    screen.line(
        f"Events: {events}. A start is reported after {phrases.exactly(found.wait_s)} in the "
        f"queue, a pause after {phrases.exactly(found.paused_s)}."
    )


def site(screen: Screen, found: SiteKinds) -> None:
    """Print the settings of ``notifications.yaml`` that are in force."""
    kinds = ", ".join(map(words.clean, found.kinds)) or "none"
    screen.line(
        f"{'In force now' if found.changed else 'Nothing changes'}. Users may add addresses of "
        f"these kinds: {kinds}. The site's own addresses: {found.pool}."
    )
