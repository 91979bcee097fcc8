"""``benchpool submit --every``, ``schedules``, ``schedule``, and pausing and removing them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.contract.schedules import Schedule, ScheduledOutcome, ScheduledTime

Benchpool = Callable[..., Any]


@pytest.mark.slow
def test_schedule_is_created_shown_paused_resumed_and_removed(
    benchpool: Benchpool, folder: Path
) -> None:
    (folder / "train.py").write_text("print(1)\n")
    result = benchpool("submit", "--every", "night at 2", "--zone", "Europe/Berlin", "train.py")
    assert result.status == 0, result.err
    first, text, coming, more = result.out.splitlines()
    id_ = first.split()[0]
    assert text == "Sends every night at 2 (Europe/Berlin), unless its last job has not ended."
    assert coming.count("02:00") == 5
    assert f"benchpool schedule {id_}" in more
    assert benchpool("jobs", "--json").json == []
    assert "night at 2 Europe/Berlin" in benchpool("schedules").out
    shown = benchpool("schedule", id_).out
    assert "cron: 0 2 * * *, time zone Europe/Berlin" in shown
    assert "Paused: " in benchpool("pause-schedule", id_).out
    assert benchpool("schedule", id_, "--json").json["next"] == []
    assert "Sends every night at 2" in benchpool("resume-schedule", id_).out
    assert benchpool("remove-schedule", id_).status == 0
    assert "No schedules." in benchpool("schedules").out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("--zone", "UTC"), "--zone needs --every WHEN."),
        (("--every", "night at 2", "--wait"), "--wait cannot be combined with --every."),
        (("--every", "night at 2", "--array", "0-3"), "--array cannot be combined with --every."),
        (("--every", "now and then"), "is not a time"),
    ],
)
def test_invalid_schedule_is_rejected(
    benchpool: Benchpool, folder: Path, words: tuple[str, ...], refusal: str
) -> None:
    (folder / "train.py").write_text("print(1)\n")
    result = benchpool("submit", *words, "train.py")
    assert (result.status, benchpool("schedules", "--json").json) == (2, [])
    assert refusal in result.err


def test_recent_runs_are_one_row_with_newest_at_right() -> None:
    at = datetime(2027, 1, 1, tzinfo=UTC)

    def came(outcome: str, state: str | None = None) -> ScheduledTime:
        return ScheduledTime(at, ScheduledOutcome(outcome), None, state, "")

    newest_first = [
        came("sent", "running"), came("refused"), came("missed"), came("skipped"),
        came("sent", "cancelled"), came("sent", "failed"), came("sent", "succeeded"),
    ]  # fmt: skip
    texts = dict.fromkeys(("id", "name", "user", "project", "when", "cron", "zone", "text"), "")
    schedule = Schedule(**texts, created=at, paused=None, next=[], last=newest_first)
    assert (schedule.signs, schedule.next_text) == ("✓✗csmr·", "")
