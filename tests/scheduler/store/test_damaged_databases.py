"""A lost or damaged database is opened with its readable records and reports the loss."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.store.records import (
    AddJob,
    AttemptRecord,
    JobRecord,
    LeaseRecord,
    SaveAttempt,
    SaveLease,
    WorkerRecord,
)
from benchpool_scheduler.store.sqlite import SqliteStore

PAGE = 4096
JOBS = 600
SUBMISSION = json.dumps({"entry": {"kind": "command", "argv": ["true"]}}).encode()


def job(number: int) -> JobRecord:
    return JobRecord(
        id=f"{number:026d}", name=f"job-{number}", project="p", user="susan",
        state=JobState.RUNNING if number == 7 else JobState.QUEUED,
        attempt=1 if number == 7 else 0, submitted=number, queued_since=number,
    )  # fmt: skip


@pytest.fixture
async def state(tmp_path: Path) -> Path:
    """Return a state folder whose database has many jobs, one running job and one held bench."""
    store = SqliteStore(tmp_path / "scheduler")
    await store.open()
    await store.commit(*(AddJob(job(n), SUBMISSION) for n in range(JOBS)))
    worker = WorkerRecord(index=0, node="here", gpus=("gpu-3",))
    await store.commit(SaveAttempt(AttemptRecord(job(7).id, 1, 1.0, (worker,))))
    await store.commit(SaveLease(LeaseRecord("l" * 26, "joe", "", "s", ("gpu-4",), 1.0)))
    await store.close()
    (tmp_path / "jobs" / job(7).id).mkdir(parents=True)
    return tmp_path


def database(state: Path) -> Path:
    return state / "scheduler" / "pool.sqlite"


def pages_of(file: Path, table: str) -> list[int]:
    """Return the numbers of the leaf pages with texts of a table."""
    data, word = file.read_bytes(), b"job-" if table == "jobs" else b"nothing"
    pages = range(1, len(data) // PAGE)
    return [n for n in pages if data[n * PAGE] == 0x0D and word in data[n * PAGE : (n + 1) * PAGE]]


def overwrite(file: Path, offset: int, data: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(offset)
        stream.write(data)


async def test_damaged_page_loses_its_records_and_holds_new_jobs(state: Path) -> None:
    file = database(state)
    pages = pages_of(file, "jobs")
    before = file.read_bytes()
    overwrite(file, pages[len(pages) // 2] * PAGE, bytes(PAGE))
    store = SqliteStore(state / "scheduler")
    found = await store.open()
    read = {it.id for it in found.jobs}
    assert JOBS - 60 < len(read) < JOBS
    assert {job(0).id, job(JOBS - 1).id} <= read  # jobs before and after the damage
    assert [it.gpus for it in found.leases] == [("gpu-4",)]
    assert found.hold is not None
    for words in (str(file), f"{len(read)} jobs", "others may be lost", "benchpool adopt --go-on"):
        assert words in found.hold
    (aside,) = file.parent.glob("pool.sqlite.damaged-*")
    assert len(aside.read_bytes()) == len(before)
    # The database is complete again: it accepts jobs, and the hold survives a restart.
    await store.commit(AddJob(job(JOBS + 1), SUBMISSION))
    await store.close()
    store = SqliteStore(state / "scheduler")
    again = await store.open()
    assert (len(again.jobs), again.hold) == (len(read) + 1, found.hold)
    await store.release_hold()
    await store.close()
    store = SqliteStore(state / "scheduler")
    assert (await store.open()).hold is None
    await store.close()


@pytest.mark.parametrize("what", ["half", "header", "first page", "everything"])
async def test_readable_records_of_damaged_file_are_recovered(state: Path, what: str) -> None:
    file = database(state)
    size = file.stat().st_size
    match what:
        case "half":
            with file.open("r+b") as stream:
                stream.truncate(size // 2)
        case "header":
            overwrite(file, 0, bytes(100))
        case "first page":
            overwrite(file, 0, bytes(PAGE))
        case _:
            file.write_bytes(b"x" * size)
    store = SqliteStore(state / "scheduler")
    found = await store.open()
    assert found.hold is not None
    assert str(file) in found.hold
    least, most = {"half": (100, JOBS - 1), "header": (JOBS, JOBS)}.get(what, (0, 0))
    assert least <= len(found.jobs) <= most
    await store.commit(AddJob(job(JOBS + 1), SUBMISSION))
    await store.close()


@pytest.mark.parametrize("what", ["missing", "empty"])
async def test_lost_database_with_job_folders_holds_new_jobs(state: Path, what: str) -> None:
    database(state).unlink()
    if what == "empty":
        database(state).touch()
    store = SqliteStore(state / "scheduler")
    found = await store.open()
    await store.close()
    assert found.hold is not None
    assert f"is {what}" in found.hold


async def test_first_start_has_no_hold(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "scheduler")
    assert (await store.open()).hold is None
    await store.close()


@pytest.mark.parametrize("facts", ["{", "\udcff", '{"id": 7}', None])
async def test_unreadable_record_loses_only_its_job_and_reserves_gpus(
    state: Path, facts: str | None
) -> None:
    with sqlite3.connect(database(state)) as db:
        value = b"\xff\xfe" if facts == "\udcff" else (facts or "").encode()
        db.execute("UPDATE jobs SET facts = CAST(? AS TEXT) WHERE id = ?", (value, job(7).id))
        db.execute("UPDATE leases SET facts = '{'")
    store = SqliteStore(state / "scheduler")
    found = await store.open()
    await store.close()
    assert (len(found.jobs), found.hold) == (JOBS - 1, None)
    assert {(it.kind, it.id, it.gpus) for it in found.unreadable} == {
        ("job", job(7).id, ("gpu-3",)), ("lease", "l" * 26, ("gpu-4",)),
    }  # fmt: skip
    assert all(it.why and it.file == str(database(state)) for it in found.unreadable)


async def test_unreadable_attempt_makes_its_running_job_unreadable(state: Path) -> None:
    with sqlite3.connect(database(state)) as db:
        db.execute("UPDATE attempts SET facts = '[]'")
    store = SqliteStore(state / "scheduler")
    found = await store.open()
    await store.close()
    assert [(it.kind, it.gpus) for it in found.unreadable] == [("job", ("gpu-3",))]
    assert job(7).id not in {it.id for it in found.jobs}


async def test_newer_database_is_rejected_with_remedy(state: Path) -> None:
    with sqlite3.connect(database(state)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(Unavailable) as refused:
        await SqliteStore(state / "scheduler").open()
    assert refused.value.code == "store-newer"
    for words in (str(database(state)), "version 99", "Start the newer release"):
        assert words in refused.value.message


async def lost_by(state: Path) -> tuple[SqliteStore, asyncio.Future[str]]:
    loss: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    store = SqliteStore(state / "scheduler", lost=loss.set_result)
    await store.open()
    return store, loss


async def test_database_deleted_while_open_is_written_back(
    state: Path,
) -> None:
    store, loss = await lost_by(state)
    await store.commit(AddJob(job(JOBS), SUBMISSION))
    for file in database(state).parent.glob("pool.sqlite*"):
        file.unlink()
    with pytest.raises(Unavailable):
        await store.commit(AddJob(job(JOBS + 1), SUBMISSION))
    assert "deleted while it was open" in await loss
    with pytest.raises(Unavailable):
        await store.commit(AddJob(job(JOBS + 1), SUBMISSION))
    await store.close()
    store = SqliteStore(state / "scheduler")
    found = await store.open()
    assert {it.id for it in found.jobs} == {job(n).id for n in range(JOBS + 1)}
    assert found.hold is None
    await store.close()


async def test_database_replaced_while_open_is_kept(state: Path, tmp_path: Path) -> None:
    old = shutil.copy(database(state), tmp_path / "old.sqlite")
    store, loss = await lost_by(state)
    await store.commit(AddJob(job(JOBS), SUBMISSION))
    Path(old).rename(database(state))
    with pytest.raises(Unavailable):
        await store.commit(AddJob(job(JOBS + 1), SUBMISSION))
    assert "replaced by another file" in await loss
    await store.close()
    store = SqliteStore(state / "scheduler")
    found = await store.open()
    assert (len(found.jobs), found.hold) == (JOBS, None)
    await store.close()


async def test_hold_message_names_newest_copy_and_restore_command(state: Path) -> None:
    for name in ("2026-01-01T000000Z-daily", "2026-01-02T000000Z-daily"):
        (state / "backups" / name).mkdir(parents=True)
        shutil.copy(database(state), state / "backups" / name / "pool.sqlite")
    database(state).unlink()
    store = SqliteStore(state / "scheduler")
    held = (await store.open()).hold or ""
    await store.close()
    newest = state / "backups" / "2026-01-02T000000Z-daily"
    assert f"`benchpool down --state {state}`" in held
    assert f"`benchpool restore {newest} --state {state}`" in held
