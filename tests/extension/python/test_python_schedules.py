"""``benchpool.submit(…, every=…)`` and ``%%train --every`` with a real pool."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest
from msgspec import structs

import benchpool
from benchpool import magic
from benchpool.schedule_handles import ScheduleHandle
from benchpool_scheduler.client import schedule_requests
from benchpool_scheduler.errors import InvalidInput, NotFound
from benchpool_support.own_kernels import KernelSession
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

NIGHT: dict[str, Any] = {"every": "night at 2", "zone": "Europe/Berlin"}


class Session:
    """Part of IPython that ``%%train`` uses."""

    def __init__(self, *inputs: str) -> None:
        self.user_ns = {"In": ["", *inputs]}


@pytest.fixture
def susan(susan: Path) -> Iterator[Path]:
    """Log in as susan and remove her schedules afterwards."""
    yield susan
    for one in benchpool.schedules():
        one.remove()


def sent_at_next_time(pool: Served, schedule: ScheduleHandle) -> benchpool.Job:
    """Move a schedule so that a time has just come, and return the job that is sent for it."""

    async def send() -> None:
        kept = pool.pool.schedules.book.get(schedule.id)
        assert kept is not None
        once = f"{datetime.fromtimestamp(kept.seen, UTC):%M %H %d %m} *"
        come = structs.replace(kept, cron=once, zone="UTC", seen=kept.seen - 60)
        await pool.pool.schedules.book.put(come)
        await pool.pool.schedules.runner.look()

    pool.do(send())
    return schedule.jobs[0]


def test_schedule_shows_next_times_and_is_paused_resumed_and_removed(susan: Path) -> None:
    (susan / "train.py").write_text("print(1)")
    schedule = benchpool.submit("train.py", name="nightly", **NIGHT)
    assert isinstance(schedule, ScheduleHandle)
    times = schedule.next
    assert ([at.hour for at in times], schedule.last, schedule.jobs) == ([2] * 5, [], [])
    assert repr(schedule) == (
        f"{schedule.id[:8]} nightly: Sends every night at 2 (Europe/Berlin), unless its last job "
        f"has not ended.\nnext: {', '.join(f'{at:%a %d %b} 02:00' for at in times)}"
    )
    assert (schedule.pause().paused, schedule.next) == ("susan paused it.", [])
    assert repr(schedule) == f"{schedule.id[:8]} nightly: Paused: susan paused it."
    assert schedule.resume().next == times
    assert benchpool.schedules() == [schedule]
    schedule.remove()
    assert benchpool.schedules() == []
    with pytest.raises(NotFound):
        schedule.refresh()


def test_scheduled_notebook_runs_with_its_parameters(pool: Served, susan: Path) -> None:
    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_code_cell("rate = 1"),
        nbformat.v4.new_code_cell("twice = 2 * rate"),
    ]
    nbformat.write(book, susan / "book.ipynb")
    schedule = benchpool.submit("book.ipynb", rate=21, every="hour")
    book.cells[1].source = "twice = 0"
    nbformat.write(book, susan / "book.ipynb")  # later changes do not affect the schedule
    job = sent_at_next_time(pool, schedule)
    assert (job["twice"], job.facts.parameters) == (42, {"rate": 21})
    assert repr(schedule.refresh()).splitlines()[-1] == "last: ✓"


def test_scheduled_cell_freezes_needed_cells_and_sent_values(
    pool: Served, session: KernelSession
) -> None:
    session.run("import benchpool\nbase = 40\nlive = [1]")
    session.run("live.append(1)")
    session.run(
        "%%train --every hour --zone UTC --send live --keep total\ntotal = base + sum(live)"
    )
    session.run("base = 0\nlive.clear()")
    (schedule,) = benchpool.schedules()
    assert sent_at_next_time(pool, schedule)["total"] == 42


def test_scheduled_function_is_called_with_its_arguments(
    pool: Served, session: KernelSession
) -> None:
    session.run("import benchpool\ndef twice(x, zone='here'):\n    return 2 * x, zone")
    session.run("schedule = benchpool.submit(twice, 21, zone='eu', every='hour', name='calls')")
    (schedule,) = benchpool.schedules()
    assert schedule.name == "calls"
    assert sent_at_next_time(pool, schedule).result() == (42, "eu")


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ("train.py", {"zone": "UTC"}, "^zone needs every WHEN"),
        (math.sqrt, {"zone": "UTC"}, "^zone needs every WHEN"),
        ("train.py", {**NIGHT, "array": "0-3"}, "^array cannot be combined with every"),
        ("train.py", {"every": "now and then"}, "is not a time"),
        ("train.py", {**NIGHT, "after": "41ab23cd"}, "cannot wait for other jobs"),
    ],
)
def test_invalid_schedule_is_refused(
    susan: Path, what: Any, options: dict[str, Any], message: str
) -> None:
    (susan / "train.py").write_text("print(1)")
    with pytest.raises(InvalidInput, match=message):
        benchpool.submit(what, *([4.0] if callable(what) else []), **options)
    assert benchpool.schedules() == []


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("--zone UTC", "%%train: --zone needs --every WHEN."),
        ("--every hour --array 0-3", "%%train: --array cannot be combined with --every."),
        ("--every hour --sweep lr=1,2", "%%train: --sweep cannot be combined with --every."),
        ("--every hour --after 41ab23cd", "%%train: --after cannot be combined with --every."),
    ],
)
def test_invalid_schedule_option_of_cell_is_reported(
    susan: Path, capsys: pytest.CaptureFixture[str], line: str, refusal: str
) -> None:
    assert magic.train(Session("sent"), line, "lr = 1") is None
    assert refusal in capsys.readouterr().err


def test_schedule_uses_time_zone_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ":Australia/Lord_Howe")
    assert schedule_requests.own_zone() == "Australia/Lord_Howe"
