"""Output of access requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from benchpool_scheduler import phrases
from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract.access import AccessRequest

COLUMNS = (
    Column("USER", width=14),
    Column("PROJECT", width=14),
    Column("ASKED"),
    Column("STATE"),
    Column("WHY", rest=True),
)


def requests(screen: Screen, found: Sequence[AccessRequest]) -> None:
    """Print access requests, oldest first, and the commands that decide them."""
    if not found:
        screen.line("No access requests. `benchpool access ask PROJECT` makes one.")
        return
    now = datetime.now(UTC)
    screen.table(
        COLUMNS,
        [
            (
                words.clean(one.user),
                words.clean(one.project),
                phrases.ago((now - one.at).total_seconds()),
                "open" if one.declined is None else "declined",
                words.clean(one.reason if one.declined is None else one.declined) or "-",
            )
            for one in found
        ],
    )
    if any(one.decides for one in found):
        screen.line("Decide with `benchpool access add PROJECT USER` or `access decline …`.")


def request(screen: Screen, one: AccessRequest) -> None:
    """Print an access request that was just made or declined."""
    if one.declined is not None:
        screen.line(f"{words.clean(one.user)} sees the reason: {words.clean(one.declined)}")
        return
    screen.line(
        f"Requested access to project {words.clean(one.project)}. Its leads and administrators see "
        "the request. `benchpool access` shows its state, `benchpool quota` a granted project."
    )
