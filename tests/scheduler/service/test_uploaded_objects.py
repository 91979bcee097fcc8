"""Uploaded contents are verified by their hash, and visible only to their uploader."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import JobSubmission, ScriptEntry, SnapshotFile, State
from benchpool_scheduler.contract.schedules import ScheduleRequest
from benchpool_scheduler.errors import InvalidInput, TooLarge
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.housekeeping.retention import DAY_S
from benchpool_scheduler.service.jobs import uploads
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import JOE, SUSAN, make_pool, opened, reached
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import until_async

SCRIPT = b"import sys; print('hello from', sys.argv[1])\n"
SHA = hashlib.sha256(SCRIPT).hexdigest()
SENT = SnapshotFile("train.py", SHA, len(SCRIPT))


async def upload(pool: Pool, data: bytes = SCRIPT, sha256: str = SHA) -> None:
    writer = pool.uploads.writer(SUSAN, sha256, len(data))
    await writer.write(data[:10])
    await writer.write(data[10:])
    await writer.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def pool(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Pool]:
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        yield pool


def left_over(tmp_path: Path) -> list[str]:
    return sorted(
        str(p.relative_to(tmp_path)) for p in tmp_path.glob("objects/**/*") if p.is_file()
    )


async def test_real_job_runs_uploaded_script(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        await upload(pool)
        entry = ScriptEntry("train.py", ["here"])
        job = await pool.jobs.submit(SUSAN, JobSubmission(entry=entry, files=[SENT]))
        await reached(pool, job.id, State.SUCCEEDED)
        assert (await pool.logs.read(SUSAN, job.id)).data == b"hello from here\n"


async def test_known_hash_requires_own_upload(pool: Pool) -> None:
    await upload(pool)
    assert pool.uploads.missing(SUSAN, [SHA, "b" * 64]) == ["b" * 64]
    assert pool.uploads.missing(JOE, [SHA]) == [SHA]
    with pytest.raises(InvalidInput, match="have not been uploaded by you"):
        await pool.jobs.submit(JOE, JobSubmission(entry=ScriptEntry("train.py"), files=[SENT]))


async def test_changed_upload_leaves_no_file(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="The file changed on the way") as caught:
        await upload(pool, sha256="b" * 64)
    assert caught.value.code == "hash-differs"
    writer = pool.uploads.writer(SUSAN, SHA, 3)
    with pytest.raises(TooLarge, match="more than the announced 3 bytes"):
        await writer.write(SCRIPT)
    pool.uploads.writer(SUSAN, SHA, 3).abort()
    assert left_over(tmp_path) == []
    assert pool.uploads.missing(SUSAN, [SHA]) == [SHA]


async def test_long_upload_in_pieces_is_stored_whole(pool: Pool) -> None:
    data = bytes(range(256)) * (3 * uploads.PIECE // 256) + b"end"
    sha256 = hashlib.sha256(data).hexdigest()
    writer = pool.uploads.writer(SUSAN, sha256, len(data))
    for start in range(0, len(data), 65_537):
        await writer.write(data[start : start + 65_537])
    await writer.close()
    with pool.uploads.place.open(sha256) as file:
        assert file.read() == data


async def test_aborted_upload_leaves_no_file(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, resume = threading.Event(), threading.Event()
    write = os.write

    def slowly(file: int, data: memoryview) -> int:
        going.set()
        resume.wait(120)
        return write(file, data)

    monkeypatch.setattr(os, "write", slowly)
    writer = pool.uploads.writer(SUSAN, SHA, 9 * uploads.PIECE)
    await writer.write(bytes(uploads.PIECE))
    waiting = asyncio.ensure_future(writer.write(bytes(uploads.PIECE)))
    await asyncio.to_thread(going.wait, 120)
    waiting.cancel()
    writer.abort()
    assert left_over(tmp_path) != [], "a thread still writes to it"
    resume.set()
    await until_async(lambda: not left_over(tmp_path))


async def test_oversized_upload_is_refused_before_transfer(pool: Pool) -> None:
    with pytest.raises(TooLarge, match=r"2147483648 are allowed"):
        pool.uploads.writer(SUSAN, SHA, uploads.OBJECT_BYTES + 1)


async def test_unreferenced_uploads_are_deleted_after_one_day(
    pool: Pool, tmp_path: Path, clock: FakeClock
) -> None:
    await upload(pool)
    other = b"import this\n"
    await upload(pool, other, hashlib.sha256(other).hexdigest())
    await pool.jobs.submit(SUSAN, JobSubmission(entry=ScriptEntry("train.py"), files=[SENT]))
    clock.pass_s(DAY_S - 1)
    await pool.housekeeping.removal.clean()
    assert len(left_over(tmp_path)) == 2
    clock.pass_s(2)
    await pool.housekeeping.removal.clean()
    assert left_over(tmp_path) == [f"objects/{SHA[:2]}/{SHA}"]


async def test_uploads_of_schedule_are_kept(pool: Pool, tmp_path: Path, clock: FakeClock) -> None:
    await upload(pool)
    sent = JobSubmission(entry=ScriptEntry("train.py"), files=[SENT])
    schedule = await pool.schedules.begin(SUSAN, ScheduleRequest(sent, "monday at 9"))
    clock.pass_s(DAY_S + 1)
    await pool.housekeeping.removal.clean()
    assert len(left_over(tmp_path)) == 1
    await pool.schedules.remove(SUSAN, schedule.id)
    await pool.housekeeping.removal.clean()
    assert left_over(tmp_path) == []
