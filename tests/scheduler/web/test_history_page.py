"""The page *History*: use, outcomes and waits of ended jobs by day."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.configuration.settings import UserHours
from benchpool_scheduler.contract import Attempt, Job, Preemption, State
from benchpool_scheduler.web.history_page import blocks
from benchpool_scheduler.web.history_view import axis, bars, ended, sentence, shares
from benchpool_support.browser import Seen
from benchpool_support.stage import StagedPool, job

NIGHT = datetime(2026, 3, 1, 22, tzinfo=UTC)


def attempt(begin: datetime, hours: float, gpus: int = 1, number: int = 1) -> Attempt:
    names = [f"GPU-{n}" for n in range(gpus)]
    return Attempt(number, begin, begin + timedelta(hours=hours), 0, "exit", names, ["lab1"])


def done(name: str, state: State, begin: datetime, hours: float, **facts: object) -> Job:
    end = begin + timedelta(hours=hours)
    return job(name, state, submitted=begin - timedelta(minutes=6), ended=end, **facts)


def test_overnight_attempt_counts_on_both_days_by_outcome() -> None:
    good = ended(done("good", State.SUCCEEDED, NIGHT, 6), [attempt(NIGHT, 6, gpus=2)])
    bad = ended(done("bad", State.FAILED, NIGHT, 1), [attempt(NIGHT, 1)])
    found = bars([good, bad], date(2026, 2, 28), date(2026, 3, 2))
    assert [bar.title for bar in found] == ["2026-02-28", "2026-03-01", "2026-03-02"]
    assert [bar.total for bar in found] == [0, 5, 8]
    assert found[1].hours == {State.SUCCEEDED: 4, State.FAILED: 1, State.CANCELLED: 0}
    drawn = blocks(found, axis(8)[-1])
    assert [one.style for one in drawn] == ["succeeded", "failed", "succeeded"]
    assert drawn[0].title == "2026-03-01: 4.00 GPU-hours of jobs that succeeded"
    assert drawn[2].height == pytest.approx(2 * drawn[0].height, abs=0.05), "from zero"


def test_history_days_follow_time_zone_and_clock_change() -> None:
    """22:00 UTC is 23:00 in Berlin; on 29 March 2026 its day has 23 hours."""
    zone = ZoneInfo("Europe/Berlin")
    good = ended(done("good", State.SUCCEEDED, NIGHT, 6), [attempt(NIGHT, 6)])
    found = bars([good], date(2026, 3, 1), date(2026, 3, 2), zone)
    assert [bar.total for bar in found] == [1, 5]
    spring = datetime(2026, 3, 28, 12, tzinfo=UTC)
    long = ended(done("long", State.SUCCEEDED, spring, 48), [attempt(spring, 48)])
    found = bars([long], date(2026, 3, 28), date(2026, 3, 30), zone)
    assert [bar.total for bar in found] == [11, 23, 14]


@given(
    st.lists(st.tuples(st.integers(0, 400 * 24), st.floats(0.01, 90)), max_size=8),
    st.integers(1, 500),
)
def test_history_bars_add_up_to_held_hours(held: list[tuple[int, float]], days: int) -> None:
    first = date(2026, 1, 1)
    last = first + timedelta(days=days - 1)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    jobs = [
        ended(done("a", State.SUCCEEDED, at, length), [attempt(at, length)])
        for at, length in ((start + timedelta(hours=begin), length) for begin, length in held)
    ]
    inside = sum(max(0.0, min(begin + length, days * 24.0) - begin) for begin, length in held)
    found = bars(jobs, first, last)
    assert math.isclose(sum(bar.total for bar in found), inside, abs_tol=1e-4)
    assert len(found) <= 62
    assert (found[0].first, found[-1].last) == (first, last)


def test_waits_and_pauses_are_sorted_by_project_size() -> None:
    pause = Preemption(NIGHT, "joe", "R9", 1800.0, None)
    rows = [
        ended(done("a", State.SUCCEEDED, NIGHT, 1), [attempt(NIGHT, 1)]),
        ended(
            done("b", State.CANCELLED, NIGHT, 9, project="vision", preemptions=[pause]),
            [attempt(NIGHT, 9)],
        ),
        ended(done("c", State.CANCELLED, NIGHT, 9, project="susan"), []),
    ]
    vision, susan = shares(rows, lambda one: one.project)
    assert (vision.name, vision.hours, vision.pauses) == (
        "vision",
        "9.00",
        "1, lost 30 min of one GPU",
    )
    assert (susan.name, susan.jobs, susan.ends) == ("susan", 2, "1 succeeded, 1 cancelled")
    assert (susan.median, susan.p95, susan.pauses) == ("6 min", "6 min", "none")
    assert sentence(rows, "your jobs") == (
        "3 jobs ended: 1 succeeded, 2 cancelled; 10.0 GPU-hours in all. Half of them began within "
        "6 min of being sent."
    )
    assert sentence([], "your jobs") == "None of your jobs ended in these days."


def as_(reader: str) -> dict[str, str]:
    return {"Cookie": f"reader={reader}"}


def stage(staged: StagedPool) -> None:
    now = datetime.now(UTC)
    for days in range(12):
        begin = datetime.combine(now.date() - timedelta(days=days), time(1), UTC)
        one = done(
            f"run {days}", (State.SUCCEEDED, State.FAILED)[days % 3 == 0], begin, 2 + days % 4
        )
        staged.add(one)
        staged.starts[one.id] = [attempt(begin, 2 + days % 4, gpus=1 + days % 2)]
    staged.add(job("still", State.RUNNING), done("=joes", State.CANCELLED, now, 0, user="joe"))


@pytest.mark.asyncio(loop_scope="module")
async def test_history_page_and_csv_list_jobs_of_selected_days(
    site: str, staged: StagedPool
) -> None:
    stage(staged)
    async with httpx.AsyncClient(base_url=site, trust_env=False) as http:
        page = await http.get("history?whose=all", headers=as_("susan"))
        assert "12 jobs ended: 8 succeeded, 4 failed" in page.text
        assert 'aria-current="true">28 days' in page.text
        assert "By user" not in page.text, "no other's job is there"
        page = await http.get("history?whose=all", headers=as_("ada"))
        assert "13 jobs ended" in page.text
        assert "By user" in page.text
        link = re.search(r'href="[^"]*(history\.csv\?[^"]+)"', page.text)
        assert link is not None
        answer = await http.get(link[1].replace("&amp;", "&"), headers=as_("ada"))
        assert answer.headers["Content-Type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert len(rows) == 13
        assert {"'=joes", "run 3"} <= {row["name"] for row in rows}
        assert next(row["gpu_hours"] for row in rows if row["name"] == "run 3") == "10.0000"
        first = datetime.now(UTC).date() - timedelta(days=400)
        page = await http.get(f"history?from={first}&to={first}", headers=as_("susan"))
        assert "None of your jobs ended in these days." in page.text
        for wrong in ("from=soon", "from=2026-02-02&to=2026-01-01", "from=1000-01-01"):
            answer = await http.get(f"history?{wrong}", headers=as_("susan"))
            assert (answer.status_code, "Give a" in answer.text) == (422, True)


@pytest.mark.asyncio(loop_scope="module")
async def test_history_page_uses_configured_time_zone(site: str, staged: StagedPool) -> None:
    staged.configuration = Configuration(gpu_hours=UserHours(time_zone="Pacific/Auckland"))
    staged.add(done("late", State.SUCCEEDED, NIGHT, 1))
    async with httpx.AsyncClient(base_url=site, trust_env=False) as http:
        for day, words in (("2026-03-02", "1 job ended"), ("2026-03-01", "None of your jobs")):
            page = await http.get(f"history?from={day}&to={day}", headers=as_("susan"))
            assert "days of Pacific/Auckland" in page.text
            assert words in page.text, "23:00 UTC is noon of the next day there"


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_history_page_is_reached_and_readable_on_phone(
    visit: Callable[..., Awaitable[Seen]], staged: StagedPool
) -> None:
    stage(staged)
    seen = await visit("susan", width=390)
    await seen.page.get_by_role("link", name="History").click()
    await seen.page.get_by_text("12 jobs ended: 8 succeeded, 4 failed").wait_for()
    wide = await seen.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390, "nothing is beside the screen"
    await seen.page.get_by_role("link", name="7 days").click()
    await seen.page.get_by_text("7 jobs ended").wait_for()
    assert seen.faults == seen.violations == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("query", ["to=0001-01-01", "from=9999-01-01&to=9999-12-31", "from=x"])
async def test_invalid_history_days_are_rejected(site: str, query: str) -> None:
    async with httpx.AsyncClient(base_url=site, trust_env=False) as http:
        for page in ("history", "history.csv"):
            answer = await http.get(f"{page}?{query}", headers=as_("joe"))
            assert answer.status_code == 422
            assert "Give a day such as 2026-11-23, in a year from 1970 to 2999" in answer.text
