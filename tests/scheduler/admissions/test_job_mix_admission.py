"""The complete service is driven with a mix of jobs, in real time and in virtual time."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from benchpool_scheduler.admissions import driving, report
from benchpool_scheduler.admissions.mixes import (
    MIXES,
    Class,
    Mix,
    Published,
    configuration,
)
from benchpool_scheduler.admissions.virtual_clock import VirtualClock, VirtualTimeLoop, WatchedStore

KEYS = [
    *("mix", "clock", "policy", "jobs", "units", "wall_s", "cpu_s", "makespan_s"),
    *("admissions_per_s", "latency_s", "useful_utilisation", "evictions", "peak_rss_mib", "kueue"),
]

SMALL = Mix(
    "small", 1, 2,
    (Class("small", 60, 0.01, 3.0, 50, 1), Class("large", 2, 2.0, 2.0, 200, 20)),
    Published(100, 1, {"small": 9.0}, 5, 6),
)  # fmt: skip
"""40 units: after two seconds the small jobs hold all of them, then the large jobs reclaim
theirs.
"""


def test_mixes_match_kueue_test() -> None:
    sizes = {name: (mix.jobs, mix.units, len(mix.projects)) for name, mix in MIXES.items()}
    assert sizes == {"baseline": (15_000, 600, 30), "large": (50_000, 20_000, 1000)}
    assert MIXES["baseline"].unit_seconds / 600 == pytest.approx(66.0)


def test_project_borrows_only_from_its_cohort() -> None:
    settings = configuration(MIXES["baseline"], "eager")
    parents = [p.project for p in settings.projects if p.project.parent is None]
    children = [p.project for p in settings.projects if p.project.parent is not None]
    assert {(p.quota, p.limit) for p in parents} == {(120, 120)}
    assert {(p.quota, p.limit) for p in children} == {(20, 120)}


def test_all_jobs_end_and_evicted_jobs_restart_from_zero() -> None:
    figures = driving.drive(SMALL, "virtual", "eager")
    assert figures.evictions > 0
    assert figures.latency_s.keys() == {"small", "large"}
    assert figures.latency_s["large"] < figures.latency_s["small"]
    # 520 unit-seconds on 40 units.
    assert figures.makespan_s > 13.0
    assert figures.useful_utilisation == pytest.approx(13.0 / figures.makespan_s, abs=0.001)


def test_protected_job_is_not_evicted() -> None:
    brief = Mix(
        "brief", 1, 2,
        (Class("small", 60, 0.01, 0.9, 50, 1), Class("large", 2, 0.3, 0.9, 200, 20)),
        SMALL.kueue,
    )  # fmt: skip
    assert driving.drive(brief, "virtual", "protected").evictions == 0
    assert driving.drive(brief, "virtual", "eager").evictions > 0


def test_makespan_in_real_time_is_wall_time() -> None:
    one = Mix("one", 1, 1, (Class("small", 3, 0.05, 0.2, 50, 1),), SMALL.kueue)
    figures = driving.drive(one, "real", "eager")
    assert 0.35 <= figures.makespan_s <= figures.wall_s


def test_json_has_exact_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MIXES, "small", SMALL)
    lines: list[str] = []
    assert report.run("small", "virtual", "eager", json=True, echo=lines.append) == 0
    (row,) = map(json.loads, lines)
    assert list(row) == KEYS
    assert row["kueue"]["per_s"] == 1


def test_table_shows_published_kueue_results() -> None:
    figures = driving.drive(SMALL, "virtual", "protected")
    heading, names, *rows = report.table(figures, SMALL)
    assert heading == "mix small: 124 jobs, 40 units, virtual clock, policy protected"
    assert names.split() == ["benchpool", "Kueue", "ideal"]
    by_name = {row[:50].strip(): row[50:].split() for row in rows}
    assert any(row.endswith("9") for row in rows if "admission, small" in row)
    assert any("5 (6 with restarts)" in row for row in rows)
    assert len(by_name) == len(rows) == 9


def test_virtual_time_jumps_to_timers_and_waits_for_threads(
    tmp_path: Path,
) -> None:
    async def life() -> tuple[float, float, float]:
        loop = asyncio.get_running_loop()
        clock = VirtualClock(loop)
        begun = clock.now()
        await asyncio.sleep(3600)
        after_sleep = clock.now() - begun
        await asyncio.to_thread(time.sleep, 0.05)
        store = WatchedStore(tmp_path / "store")
        await store.open()
        timer = asyncio.create_task(asyncio.sleep(1000))
        await store.commit()
        after_commit = clock.now() - begun
        await timer
        await store.close()
        return after_sleep, after_commit, clock.now() - begun

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        found = runner.run(life())
    assert found == pytest.approx((3600, 3600, 4600), abs=0.001)
