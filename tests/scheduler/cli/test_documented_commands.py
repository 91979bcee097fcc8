"""Commands on the pages about retries, order and schedules work as written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_support import checkout
from benchpool_support.waiting import until

from .conftest import Benchpool, CommandResult

pytestmark = pytest.mark.slow

HOWTO = checkout.ROOT / "docs" / "howto"
NEEDS_TERMINAL = "benchpool shell"
"""These commands are tested in ``tests/workstation/test_shell_command.py``."""
MADE = re.compile(r"^([a-z0-9]{8}) ", re.MULTILINE)


def commands(page: str) -> list[list[str]]:
    """Return the words of all commands in the console blocks of a page, without ``benchpool``."""
    typed = re.findall(r"^\$ (benchpool .*)$", (HOWTO / page).read_text(), re.MULTILINE)
    return [
        shlex.split(line, comments=True)[1:]
        for line in typed
        if not line.startswith(NEEDS_TERMINAL)
    ]


@pytest.fixture
def project(folder: Path) -> Path:
    """Return a folder with the scripts that the pages name."""
    (folder / "train.py").write_text("import time; print('trains', flush=True); time.sleep(600)")
    (folder / "plot.py").write_text("print('plotted')")
    return folder


def typed(benchpool: Benchpool, page: str) -> Iterator[CommandResult]:
    """Yield the result of each command of a page; ``ID`` and example IDs stand for the last ID."""
    last = ""
    for words in commands(page):
        named = [last if re.fullmatch(r"ID|41ab23cd", word) else word for word in words]
        if "peek" in named:
            until(lambda: benchpool("jobs", "--json").json[0]["state"], holds="running".__eq__)
        result = benchpool(*named)
        assert result.status == 0, f"{shlex.join(words)}: {result.err}"
        made = MADE.search(result.out)
        last = made[1] if words[0] == "submit" and made else last
        yield result


def test_commands_of_page_about_retries_work(benchpool: Benchpool, project: Path) -> None:
    peeks = [one.out for one in typed(benchpool, "retries.md") if "1 worker. Attempt 1" in one.out]
    assert len(peeks) == 1
    assert "worker 0:" in peeks[0]


def test_commands_of_page_about_order_work(benchpool: Benchpool, project: Path) -> None:
    first, second = typed(benchpool, "job-order.md")
    assert f"Waits for job {first.out[:8]} train" in second.out


def test_commands_of_page_about_schedules_work(benchpool: Benchpool, project: Path) -> None:
    created, listed, shown, paused, resumed, _ = typed(benchpool, "schedules.md")
    assert "Sends every night at 2 (Europe/Berlin), unless" in created.out
    assert "night at 2 Europe/Berlin" in listed.out
    assert ["next: " in one.out for one in (shown, paused, resumed)] == [True, False, True]
    assert "No schedules." in benchpool("schedules").out
