"""Guarantees of the SQLite store: atomic commits, one GPU holder, one process, durability."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.store import Conflict, schema, writer
from benchpool_scheduler.store.diagnosis import sqlite_verdict
from benchpool_scheduler.store.records import (
    AddJob,
    AddObject,
    AttemptRecord,
    DropJob,
    JobRecord,
    LeaseRecord,
    PreemptionRecord,
    SaveAttempt,
    SaveJob,
    SaveLease,
    SavePreemption,
    WorkerRecord,
)
from benchpool_scheduler.store.sqlite import SqliteStore, file_system_of
from benchpool_support.asking import asking
from benchpool_support.waiting import until_async


def job(name: str, **more: object) -> JobRecord:
    facts: dict[str, object] = {
        "id": name.ljust(26, "a"),
        "name": name,
        "project": "p",
        "user": "susan",
        "state": JobState.QUEUED,
        "submitted": 1.0,
        "queued_since": 1.0,
        **more,
    }
    return JobRecord(**asking(facts))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = SqliteStore(tmp_path)
    await found.open()
    yield found
    await found.close()


async def test_records_are_loaded_in_order(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path)
    await first.open()
    one, two = job("one"), job("two", key="k")
    attempt = AttemptRecord(one.id, 1, 2.0, (WorkerRecord(0, "n", ("g1", "g2")),))
    preemption = PreemptionRecord(one.id, 1, 3.0, two.id, "p/two", "R15", 12.5, 2)
    lease = LeaseRecord("lease", "joe", "", "s1", ("g3",), 4.0)
    await first.commit(AddJob(two, b"{}"), AddJob(one, b'{"x": 1}'))
    await first.commit(SaveAttempt(attempt), SavePreemption(preemption), SaveLease(lease))
    await first.close()
    second = SqliteStore(tmp_path)
    contents = await second.open()
    assert contents.jobs == (two, one)
    assert contents.attempts == (attempt,)
    assert contents.preemptions == (preemption,)
    assert contents.leases == (lease,)
    assert second.submission(one.id) == b'{"x": 1}'
    await second.close()


async def test_commit_is_atomic(store: SqliteStore) -> None:
    await store.commit(AddJob(job("one"), b"{}"))
    with pytest.raises(Conflict):
        await store.commit(AddJob(job("two"), b"{}"), AddJob(job("one"), b"{}"))
    assert store.submission(job("two").id) is None


async def test_failed_commit_does_not_affect_its_group(store: SqliteStore) -> None:
    commits = [store.commit(AddJob(job(f"n{i % 9}"), b"{}")) for i in range(10)]
    answers = await asyncio.gather(*commits, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None)] * 9 + [Conflict]


async def test_gpu_has_one_holder(store: SqliteStore) -> None:
    one, two = job("one"), job("two")
    await store.commit(AddJob(one, b"{}"), AddJob(two, b"{}"))
    held = AttemptRecord(one.id, 1, 1.0, (WorkerRecord(0, "n", ("g1",)),))
    await store.commit(SaveAttempt(held))
    with pytest.raises(Conflict):
        await store.commit(SaveLease(LeaseRecord("lease", "joe", "", "s", ("g1",), 1.0)))
    other = AttemptRecord(two.id, 1, 1.0, (WorkerRecord(0, "n", ("g1",)),))
    with pytest.raises(Conflict):
        await store.commit(SaveAttempt(other))
    ended = AttemptRecord(one.id, 1, 1.0, (WorkerRecord(0, "n", ("g1",), ended=2.0),))
    await store.commit(SaveAttempt(ended))
    await store.commit(SaveLease(LeaseRecord("lease", "joe", "", "s", ("g1",), 1.0)))


async def test_idempotency_key_is_unique_per_user(store: SqliteStore) -> None:
    await store.commit(AddJob(job("one", key="k"), b"{}"))
    await store.commit(AddJob(job("two", key="k", user="joe"), b"{}"))
    with pytest.raises(Conflict):
        await store.commit(AddJob(job("three", key="k"), b"{}"))


async def test_second_service_is_rejected_with_process_id(
    store: SqliteStore, tmp_path: Path
) -> None:
    with pytest.raises(Unavailable, match=f"in use by process {os.getpid()}"):
        await SqliteStore(tmp_path).open()


async def test_database_of_newer_release_is_rejected(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path)
    await first.open()
    await first.close()
    with sqlite3.connect(tmp_path / "pool.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(Unavailable, match="has version 99; this release of benchpool supports"):
        await SqliteStore(tmp_path).open()


async def test_full_disk_rejects_commits_until_space_returns(store: SqliteStore) -> None:
    await store.commit(AddJob(job("one"), b"{}"))

    def limit(pages: int):  # type: ignore[no-untyped-def]
        return lambda db: db.execute(f"PRAGMA max_page_count = {pages}").close()

    # A transaction cannot change the limit, so the writer's connection sets it beforehand.
    await store.writer.run(limit(1))
    with pytest.raises(Unavailable, match=r"is full\. Nothing can be accepted") as caught:
        await store.commit(AddJob(job("two"), b"x" * 1_000_000))
    assert caught.value.code == "store-full"
    assert store.submission(job("one").id) == b"{}"
    await store.writer.run(limit(100_000))
    await store.commit(AddJob(job("two"), b"x" * 1_000_000))


async def test_uploads_belong_to_user_and_are_deleted_when_unused(
    store: SqliteStore,
) -> None:
    used, unused, fresh = "a" * 64, "b" * 64, "c" * 64
    for sha256, at in ((used, 1.0), (unused, 1.0), (fresh, 9.0)):
        await store.commit(AddObject(sha256, "susan", 3, at))
    await store.commit(AddJob(job("one"), b"{}", objects=(used,)))
    assert store.objects_of("susan", [used, unused, "d" * 64]) == {used, unused}
    assert store.objects_of("joe", [used]) == frozenset()
    assert await store.unused_objects(before=5.0) == (unused,)
    await store.forget_objects([unused])
    assert store.objects_of("susan", [unused]) == frozenset()
    await store.commit(DropJob(job("one").id))
    assert await store.unused_objects(before=5.0) == (used,)


async def test_database_uses_durable_pragmas(store: SqliteStore, tmp_path: Path) -> None:
    found: dict[str, object] = {}

    def look(db: sqlite3.Connection) -> None:
        for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema"):
            found[name] = db.execute(f"PRAGMA {name}").fetchone()[0]

    await store.writer.run(look)
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "trusted_schema": 0,
    }


async def test_saved_job_replaces_earlier_record(store: SqliteStore, tmp_path: Path) -> None:
    await store.commit(AddJob(job("one"), b"{}"))
    await store.commit(SaveJob(job("one", state=JobState.CANCELLED, ended=5.0)))
    await store.close()
    contents = await SqliteStore(tmp_path).open()
    assert contents.jobs[0].state is JobState.CANCELLED


@pytest.mark.parametrize(
    ("version", "ok", "words"),
    [
        ((3, 36, 0), False, "too old"),
        ((3, 40, 1), True, "single writer"),
        ((3, 51, 2), True, "single writer"),
        ((3, 51, 3), True, "no known bug"),
        ((3, 52, 0), True, "single writer"),
        ((3, 53, 0), True, "no known bug"),
    ],
)
def test_sqlite_verdict_depends_on_version(
    version: tuple[int, int, int], ok: bool, words: str
) -> None:
    verdict = sqlite_verdict(version)
    assert (verdict.ok, words in verdict.text) == (ok, True)


@pytest.mark.parametrize(("folder", "kind"), [("/proc/self", "proc"), ("/sys/kernel", "sysfs")])
def test_file_system_is_found_by_deepest_mount(folder: str, kind: str) -> None:
    assert file_system_of(Path(folder)) == kind


async def test_database_shrinks_after_jobs_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "IDLE_S", 0.05)
    store = SqliteStore(tmp_path)
    await store.open()
    jobs = [job(f"j{number}x") for number in range(1000)]
    await store.commit(*(AddJob(one, b"x" * 4000) for one in jobs))
    async with asyncio.timeout(120):
        await until_async(lambda: (tmp_path / "pool.sqlite").stat().st_size >= 4_000_000)
        await store.commit(*(DropJob(one.id) for one in jobs))
        await until_async(lambda: (tmp_path / "pool.sqlite").stat().st_size <= 200_000)
    await store.close()


async def test_database_of_earlier_release_becomes_shrinkable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(schema, "shrinkable", lambda connection: None)
        store = SqliteStore(tmp_path)
        await store.open()
        await store.commit(AddJob(job("kept"), b"{}"))
        await store.close()
    with sqlite3.connect(tmp_path / "pool.sqlite") as db:
        assert db.execute("PRAGMA auto_vacuum").fetchone()[0] == 0
    store = SqliteStore(tmp_path)
    assert [one.name for one in (await store.open()).jobs] == ["kept"]
    await store.close()
    with sqlite3.connect(tmp_path / "pool.sqlite") as db:
        assert db.execute("PRAGMA auto_vacuum").fetchone()[0] == schema.INCREMENTAL
