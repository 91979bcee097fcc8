"""Verb for a machine's maintenance window, with times in the user's own time zone."""

from __future__ import annotations

from datetime import datetime

from benchpool_scheduler.cli import node_views
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, argument, option
from benchpool_scheduler.contract import durations, instants
from benchpool_scheduler.errors import InvalidInput


def lasts_s(text: str) -> int:
    """Parse ``--for`` into seconds. Errors: InvalidInput for an invalid duration."""
    seconds = durations.seconds(text)
    if not seconds:
        raise InvalidInput(f"--for is {text}. Give a length such as 4h or 90m.", field="lasts_s")
    return round(seconds)


def _window(session: Session, options: Options) -> int:
    answer = session.client.maintain_node(
        options["id"],
        instants.read(options["begins"], "--from", "begins", datetime.now().astimezone()),
        lasts_s(options["lasts"]),
        options["reason"],
    )
    if session.screen.json:
        session.screen.value(answer)
    else:
        node_views.node(session.screen, answer)
    return 0


WINDOW = Verb(
    ("node", "maintenance"),
    "Set the maintenance window of a machine.",
    _window,
    (
        argument("id", metavar="NODE"),
        option("--from", "begins", required=True, metavar="T",
               help="Start: a time in this terminal's zone, such as '2026-11-28 08:00', or a "
               "duration from now, such as 90m."),
        option("--for", "lasts", required=True, metavar="D", help="Length, such as 4h."),
        option("--reason", required=True, help="Short reason, shown to waiting users."),
    ),
    "Nothing starts on the machine during the window. Before it, only jobs start whose time limit "
    "ends earlier. Running work continues: `benchpool nodes` counts the jobs that may not end in "
    "time. The window replaces the present one; `benchpool node uncordon` removes it.",
    replaces=("node", "window"),
)  # fmt: skip
