"""A copy of the database is a consistent snapshot and does not block commits."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.store.checking import fault_of
from benchpool_scheduler.store.copies import folder_name
from benchpool_scheduler.store.records import AddJob, JobRecord
from benchpool_scheduler.store.sqlite import SqliteStore

OLD = Path(__file__).parent / "state_of_0_1_0" / "pool.sqlite"
SUBMISSION = json.dumps({"entry": {"kind": "command", "argv": ["true"]}}).encode() * 20


def job(number: int) -> AddJob:
    return AddJob(
        JobRecord(
            id=f"{number:026d}", name=f"job-{number}", project="p", user="susan",
            state=JobState.QUEUED, submitted=number, queued_since=number,
        ),
        SUBMISSION,
    )  # fmt: skip


def numbers(file: Path) -> list[int]:
    with sqlite3.connect(file) as db:
        return [int(row[0]) for row in db.execute("SELECT id FROM jobs ORDER BY number")]


async def test_copy_is_consistent_and_commits_continue(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "scheduler")
    await store.open()
    await store.commit(*(job(number) for number in range(4000)))
    copying = asyncio.create_task(store.copy_to(tmp_path / "copy.sqlite"))
    meanwhile = 0
    while not copying.done():
        await store.commit(job(4000 + meanwhile))
        meanwhile += 1
    await copying
    await store.commit(job(9999))
    await store.close()
    assert meanwhile > 1  # commits were answered during the copy
    assert fault_of(tmp_path / "copy.sqlite") is None
    found = numbers(tmp_path / "copy.sqlite")
    assert found == list(range(len(found)))  # no gap: a snapshot of one instant
    assert 4000 <= len(found) <= 4000 + meanwhile
    assert [it.name for it in tmp_path.iterdir() if "copy" in it.name] == ["copy.sqlite"]


async def test_failed_copy_does_not_affect_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "scheduler")
    await store.open()
    with pytest.raises(Unavailable) as failed:
        await store.copy_to(tmp_path / "nowhere" / "copy.sqlite")
    assert failed.value.code == "copy-failed"
    await store.commit(job(1))
    await store.close()


async def test_database_is_copied_before_migration(tmp_path: Path) -> None:
    (tmp_path / "scheduler").mkdir()
    shutil.copy(OLD, tmp_path / "scheduler" / "pool.sqlite")
    for _ in range(2):
        store = SqliteStore(tmp_path / "scheduler")
        await store.open()
        await store.close()
    (kept,) = (tmp_path / "backups").iterdir()
    assert "before-version" in kept.name
    with sqlite3.connect(kept / "pool.sqlite") as now, sqlite3.connect(OLD) as before:
        for query in ("PRAGMA user_version", "SELECT id, facts FROM jobs ORDER BY id"):
            assert now.execute(query).fetchall() == before.execute(query).fetchall()


def test_copy_folder_names_are_unique_and_ordered() -> None:
    names = [folder_name("asked") for _ in range(100)]
    assert names == sorted(names)
    assert len(set(names)) > 1
