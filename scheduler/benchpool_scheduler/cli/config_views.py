"""Output of the configuration, its changes and its versions."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Cell, Column, Screen
from benchpool_scheduler.contract import ConfigurationChange
from benchpool_scheduler.contract.configuration import ConfigurationText, ConfigurationVersion
from benchpool_scheduler.phrases import visible

VERSION_COLUMNS = (
    Column("VERSION", align="right"),
    Column("WHEN"),
    Column("WHO", width=14),
    Column("HOW"),
    Column("REASON AND CHANGES", rest=True, wrap=True),
)


def change(screen: Screen, answer: ConfigurationChange) -> None:
    """Print the changes of a configuration, by project and user."""
    for warning in answer.warnings:
        screen.line(f"! {words.clean(warning)}")
    for line in answer.changes:
        screen.line(words.clean(line))
    if not answer.changes:
        screen.line("Nothing changes.")
    if not answer.applied:
        screen.line("Preview only: nothing was changed.")
        return
    named = "" if answer.version is None else f" as version {answer.version}"
    kept = "" if answer.file is None else f"; the file in use is {answer.file}"
    screen.line(words.clean(f"In force{named}{kept}."))


def versions(screen: Screen, answer: Sequence[ConfigurationVersion]) -> None:
    """Print the previous versions of the configuration, one line per change."""
    rows: list[tuple[str | Cell, ...]] = []
    for one in answer:
        first, *rest = [*([one.reason] if one.reason else []), *one.changes] or [
            "first recorded version" if one.number == 1 else "no effects"
        ]
        how = one.way.value if one.reverts is None else f"{one.way.value} to {one.reverts}"
        when = one.at.astimezone().strftime("%Y-%m-%d %H:%M")
        rows.append((str(one.number), when, one.author or "-", how, words.clean(first)))
        rows += [("", "", "", "", words.clean(line)) for line in rest]
    screen.table(VERSION_COLUMNS, rows)
    if not answer:
        screen.line("No version is recorded yet.")


def text(screen: Screen, answer: ConfigurationText) -> None:
    """Print the text of a version unchanged."""
    for line in answer.text.splitlines():
        screen.line(visible(line.expandtabs(4)))
