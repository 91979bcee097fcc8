"""Output of schedules."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract.schedules import Schedule, ScheduledOutcome, ScheduledTime

SIGNS = {"succeeded": "✓", "failed": "✗", "cancelled": "c"}
"""Symbols of ended jobs. Other jobs have a dot."""
_UNSENT = {
    ScheduledOutcome.SKIPPED: "s",
    ScheduledOutcome.MISSED: "m",
    ScheduledOutcome.REFUSED: "r",
}
LEGEND = "✓ succeeded, ✗ failed, c cancelled, · not ended, s skipped, m missed, r refused"

SCHEDULE_COLUMNS = (
    Column("ID"),
    Column("NAME", width=18),
    Column("USER", width=12),
    Column("WHEN"),
    Column("NEXT"),
    Column("LAST TEN"),
)


def line_of(last: Sequence[ScheduledTime]) -> str:
    """Return the outcomes of the last times as one character each, the newest at the right."""
    return "".join(sign_of(time) for time in reversed(last)) or "-"


def sign_of(time: ScheduledTime) -> str:
    """Return the character for the outcome of a time."""
    return _UNSENT.get(time.outcome) or SIGNS.get(time.state or "", "·")


def schedules(screen: Screen, found: Sequence[Schedule]) -> None:
    """Print schedules, one line each."""
    if not found:
        screen.line("No schedules. `benchpool submit --every 'night at 2' train.py` creates one.")
        return
    screen.table(
        SCHEDULE_COLUMNS,
        [
            (
                words.short(one.id),
                words.clean(one.name),
                words.clean(one.user),
                words.clean(f"{one.when} {one.zone}"),
                f"{one.next[0]:%a %d %b %H:%M}" if one.next else "paused",
                line_of(one.last),
            )
            for one in found
        ],
    )
    screen.line(LEGEND)


def schedule(screen: Screen, one: Schedule) -> None:
    """Print a schedule: its next times, and its last ones with the reason if no job was sent."""
    screen.heading(f"{words.short(one.id)} {words.clean(one.name)}, project {one.project}")
    screen.line(words.clean(one.text))
    screen.line(f"cron: {one.cron}, time zone {one.zone}")
    if one.next:
        screen.line("next: " + ", ".join(f"{at:%a %d %b %H:%M}" for at in one.next))
    screen.line(f"last ten: {line_of(one.last)}")
    for time in one.last:
        job = "-" if time.job is None else words.short(time.job)
        text = time.text or time.state or "the job is no longer kept"
        screen.line(
            f"  {time.at:%Y-%m-%d %H:%M}  {time.outcome.value:8}  {job}  {words.clean(text)}"
        )
