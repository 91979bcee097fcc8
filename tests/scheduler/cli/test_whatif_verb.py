"""``benchpool whatif`` in an administrator's terminal, against a real service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.testing.serving import CONFIGURATION, Served

Benchpool = Callable[..., Any]


@pytest.fixture
def borrowed(benchpool: Benchpool, service: Served) -> None:
    """Susan runs on three of the four pool GPUs; joe waits for four."""
    benchpool("submit", "--gpus", "3", "--name", "runs", "--", "sleep", "600")
    waits = benchpool(
        "submit", "--gpus", "4", "--name", "waits", "--json", "--", "true", by="joe"
    ).json["id"]
    with service.client("joe") as joe:
        for _ in joe.events():
            reason = joe.why(waits).reason
            if reason is not None and reason.code != "next-pass":
                return
    raise AssertionError("events never end")


@pytest.fixture
def swapped(folder: Path) -> Path:
    """A configuration that gives everything to speech."""
    file = folder / "swapped.yaml"
    text = CONFIGURATION.replace("vision, quota: 2", "vision, quota: 0")
    file.write_text(text.replace("speech, quota: 2", "speech, quota: 4"))
    return file


@pytest.mark.usefixtures("borrowed")
def test_another_configuration_is_told_by_project_and_job(
    benchpool: Benchpool, swapped: Path
) -> None:
    said = benchpool("whatif", "--config", str(swapped), by="root")
    assert said.status == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("Now 1 waiting job would run, 1 job would wait instead of running")
    rows = [line.split() for line in lines]
    assert ["speech", "2", "→", "4", "2", "→", "4", "0", "→", "4", "1", "→", "0", "0"] in rows
    assert any(row[1:] and row[1] == "runs" and "paused;" in row for row in rows)
    assert lines[-1] == "Only looked: nothing was changed."
    assert max(map(len, lines[6:])) <= 80, said.out


@pytest.mark.usefixtures("borrowed")
def test_more_gpus_are_told_as_json(benchpool: Benchpool) -> None:
    answer = benchpool("whatif", "--more-gpus", "4", "--gpu-model", "A100", "--json", by="root")
    assert answer.json["after"] == {"gpus": 8, "allocated": 7}
    assert [job["after"]["state"] for job in answer.json["jobs"]] == ["runs"]


def test_who_does_not_administer_is_refused(benchpool: Benchpool) -> None:
    said = benchpool("whatif", "--more-gpus", "1")
    assert said.status == 3
    assert "administrator" in said.err


def test_a_file_that_cannot_be_read_is_named(benchpool: Benchpool, folder: Path) -> None:
    said = benchpool("whatif", "--config", str(folder / "none.yaml"), by="root")
    assert said.status == 2
    assert "none.yaml cannot be read" in said.err
