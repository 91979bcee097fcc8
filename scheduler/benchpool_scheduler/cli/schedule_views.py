"""Output of schedules."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract.schedules import LEGEND, Schedule

SCHEDULE_COLUMNS = (
    Column("ID"),
    Column("NAME", width=18),
    Column("USER", width=12),
    Column("WHEN"),
    Column("NEXT"),
    Column("LAST TEN"),
)


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
                one.signs,
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
        screen.line(f"next: {one.next_text}")
    screen.line(f"last ten: {one.signs}")
    for time in one.last:
        job = "-" if time.job is None else words.short(time.job)
        text = time.text or time.state or "the job is no longer kept"
        screen.line(
            f"  {time.at:%Y-%m-%d %H:%M}  {time.outcome.value:8}  {job}  {words.clean(text)}"
        )
