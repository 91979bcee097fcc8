"""``benchpool usage``: resource use of an ended job of the caller."""

from __future__ import annotations

import sys

import pytest

from benchpool_scheduler.cli import views
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.contract import JobUsage, UsageFigure

from .conftest import Benchpool


def test_usage_shows_numbers_change_and_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = [UsageFigure("GPU busy", "12 %"), UsageFigure("CPUs", "1.0 of 1")]
    answer = JobUsage(
        job="j", figures=figures, text="Busy.", change="Ask for more.", option="--cpus 2"
    )
    views.usage(Screen(), answer)
    assert capsys.readouterr().out.splitlines() == [
        "Busy.",
        "GPU busy    12 %",
        "CPUs        1.0 of 1",
        "Change      Ask for more.",
        "Send with   --cpus 2",
    ]


def test_usage_of_unmeasured_job_is_reported(benchpool: Benchpool) -> None:
    sent = benchpool("submit", "--wait", "--json", "--", sys.executable, "-c", "pass").json
    shown = benchpool("usage", sent["id"])
    assert (shown.status, shown.out) == (0, "Its resource use was not measured.\n")
    usage = benchpool("usage", sent["id"], "--json").json
    assert (usage["job"], usage["measured"], usage["option"]) == (sent["id"], None, "")
    assert "Found       Its resource use was not measured." in benchpool("show", sent["id"]).out
    hidden = benchpool("usage", sent["id"], by="joe")
    assert hidden.status != 0
    assert "no job" in hidden.err


def test_usage_before_end_is_rejected_with_state(benchpool: Benchpool) -> None:
    sent = benchpool("submit", "--json", "--", "sleep", "600").json
    refused = benchpool("usage", sent["id"])
    assert refused.status != 0
    assert "is reported when it has ended" in refused.err
    benchpool("cancel", sent["id"])
