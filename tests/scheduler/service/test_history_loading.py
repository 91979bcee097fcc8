"""A start reads live and recent jobs; older history is loaded in the background."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store import sqlite
from benchpool_scheduler.store.records import AddJob, AttemptRecord, JobRecord, SaveAttempt, SaveJob
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.clocks import LeapingClock
from benchpool_support.pools import ADMIN, SUSAN, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices

COUNT, RECENT = 30, 5


@pytest.fixture(autouse=True)
def few_are_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "RECENT", RECENT)


def job(number: int, ended: float | None) -> JobRecord:
    return JobRecord(
        id=f"j{number:03}".ljust(26, "x"),
        name=f"job-{number}",
        project="susan",
        user="susan",
        state=JobState.QUEUED if ended is None else JobState.SUCCEEDED,
        submitted=1000.0 + number,
        queued_since=1000.0 + number,
        ended=ended,
        key=f"key-{number}",
        attempt=0 if ended is None else 1,
    )


async def recorded(folder: Path) -> list[JobRecord]:
    """Write jobs: every tenth waits, and the oldest and the newest ended long ago."""
    jobs = [job(n, None if n % 10 == 5 else 2000.0 - abs(n - 15) - n / 1000) for n in range(COUNT)]
    store = SqliteStore(folder / "scheduler")
    await store.open()
    for one in jobs:
        body = b'{"entry":{"kind":"command","argv":["true"]},"gpus":6}'
        await store.commit(AddJob(one, body))
        if one.ended is not None:
            ran = AttemptRecord(one.id, 1, 1500.0, (), started=1500.0, ended=one.ended)
            await store.commit(SaveAttempt(ran))
    await store.close()
    return jobs


async def test_older_jobs_are_loaded_in_order(tmp_path: Path) -> None:
    jobs = await recorded(tmp_path)
    ledger = Ledger(SqliteStore(tmp_path / "scheduler"))
    await ledger.open()
    assert not ledger.whole.is_set()
    first = {it.id for it in ledger.jobs()}
    assert len(first) == RECENT + 3
    assert {it.id for it in jobs if it.live} < first
    # Changes before the rest is loaded: one job ends, one is new.
    waiting = next(it for it in jobs if it.live)
    over = replace(waiting, state=JobState.CANCELLED, ended=3000.0)
    new = job(COUNT, None)
    await ledger.commit(SaveJob(over))
    await ledger.commit(AddJob(new, b"{}"))
    await ledger.read_older()
    assert ledger.whole.is_set()
    expected = [over if it.id == over.id else it for it in jobs] + [new]
    assert list(ledger.jobs()) == expected[::-1]
    assert list(ledger.job_index.newest(users=["susan"])) == expected[::-1]
    assert ledger.live_of("susan") == 3
    assert ledger.by_key("susan", "key-0") == jobs[0]
    assert [it.attempt for it in ledger.attempts(jobs[0].id)] == [1]
    assert ledger.job_index.numbers[new.id] > max(ledger.job_index.numbers[it.id] for it in jobs)
    await ledger.store.close()


async def test_old_key_and_job_are_known_right_after_start(
    tmp_path: Path,
) -> None:
    jobs = await recorded(tmp_path)
    made = make_pool(tmp_path, runtime=ScriptedRuntime(devices(0)), clock=LeapingClock())
    async with opened(made) as pool:
        assert not pool.ledger.whole.is_set()
        same = JobSubmission(CommandEntry(["true"]), gpus=6, key="key-0")
        again = await pool.jobs.submit(SUSAN, same)
        assert again.id == jobs[0].id
        await pool.whole()
        listed = pool.jobs.select(ADMIN, all=True, state=State.SUCCEEDED)
        assert len(listed) == COUNT - 3
        assert pool.jobs.detail(SUSAN, jobs[0].id).attempts


async def test_short_history_is_loaded_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "RECENT", COUNT)
    await recorded(tmp_path)
    ledger = Ledger(SqliteStore(tmp_path / "scheduler"))
    await ledger.open()
    assert ledger.whole.is_set()
    assert len(list(ledger.jobs())) == COUNT
    await ledger.store.close()
