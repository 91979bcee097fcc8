"""The audit trail on disk: a hash chain that reveals every change."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchpool_scheduler.contract import AuditOutcome, AuditQuery, AuditRecord
from benchpool_scheduler.store.audit_files import AuditFiles

pytestmark = pytest.mark.asyncio
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def record(minutes: int, actor: str = "susan", action: str = "cancel") -> AuditRecord:
    at = BEGUN + timedelta(minutes=minutes)
    return AuditRecord(number=0, at=at, actor=actor, action=action, target=f"job{minutes}")


@asynccontextmanager
async def trail(folder: Path, **settings: float) -> AsyncIterator[AuditFiles]:
    files = AuditFiles(folder, **settings)  # type: ignore[arg-type]
    await files.open()
    try:
        yield files
    finally:
        await files.close()


async def written(folder: Path, number: int) -> Path:
    """Write this number of records and return their file."""
    async with trail(folder) as files:
        await asyncio.gather(*(files.append(record(minute)) for minute in range(number)))
    return next(folder.glob("*.jsonl"))


async def test_records_are_numbered_and_chained_across_restart(tmp_path: Path) -> None:
    await written(tmp_path, 3)
    async with trail(tmp_path) as files:
        await files.append(record(9, "joe"))
        check = files.verify()
        page = files.read(AuditQuery())
    assert (check.ok, check.first, check.last) == (True, 1, 4)
    assert [one.number for one in page.records] == [4, 3, 2, 1]
    assert page.records[0].hash == check.hash
    assert [one.previous for one in page.records[:-1]] == [one.hash for one in page.records[1:]]


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda lines: [lines[0].replace(b"susan", b"sarah"), *lines[1:]], "was changed"),
        (lambda lines: [lines[0], *lines[2:]], "does not follow number 1"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "does not follow"),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], "does not follow"),
        (lambda lines: [*lines[:2], b"{}\n", *lines[2:]], "was changed"),
    ],
)
async def test_tampered_trail_is_detected(tmp_path: Path, harm: object, message: str) -> None:
    file = await written(tmp_path, 4)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(harm(lines)))  # type: ignore[operator]
    check = AuditFiles(tmp_path).verify()
    assert not check.ok
    assert message in str(check.problem)
    assert file.name in str(check.problem)


async def test_truncated_trail_is_detected_by_number_or_noted_hash(
    tmp_path: Path,
) -> None:
    async with trail(tmp_path) as files:
        for minute in range(3):
            await files.append(record(minute))
        noted = files.verify()
        file = next(tmp_path.glob("*.jsonl"))
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[:2]))
        found = files.verify()
    assert "ends with number 2, although number 3 was written" in str(found.problem)
    reopened = AuditFiles(tmp_path)
    assert reopened.verify().ok  # the chain alone does not show it
    assert "Record 3 does not exist" in str(reopened.verify(noted.last, noted.hash).problem)


async def test_rewritten_trail_fails_noted_hash(tmp_path: Path) -> None:
    await written(tmp_path / "one", 3)
    noted = AuditFiles(tmp_path / "one").verify()
    async with trail(tmp_path / "two") as files:
        for minute in range(3):
            await files.append(record(minute, "joe"))
    rewritten = AuditFiles(tmp_path / "two")
    assert AuditFiles(tmp_path / "one").verify(noted.last, noted.hash).ok
    assert "noted earlier" in str(rewritten.verify(noted.last, noted.hash).problem)


async def test_truncated_record_is_dropped_and_chain_continues(tmp_path: Path) -> None:
    file = await written(tmp_path, 2)
    with file.open("ab") as torn:
        torn.write(b'{"number":3,"at":"2026-')
    async with trail(tmp_path) as files:
        await files.append(record(5))
        check = files.verify()
    assert (check.ok, check.last) == (True, 3)


@pytest.mark.parametrize("torn", [b'{"number":3,"at":"2026-\n', b"\0" * 4096 + b"\n", b"a\nb\n"])
async def test_invalid_record_is_moved_away_and_chain_continues(
    tmp_path: Path, torn: bytes
) -> None:
    file = await written(tmp_path, 2)
    with file.open("ab") as end:
        end.write(torn)
    async with trail(tmp_path) as files:
        await files.append(record(5))
        check, (damage,) = files.verify(), files.damage
    assert (check.ok, check.first, check.last) == (True, 1, 3)
    assert [one.name for one in sorted(tmp_path.glob("*.jsonl"))] == [
        "000000000001.jsonl",
        "000000000003.jsonl",
    ]
    (kept,) = tmp_path.glob("*.damaged-*")
    assert kept.read_bytes() == torn
    assert f"were moved to {kept.name}" in damage
    assert kept.stat().st_mode & 0o777 == 0o600
    assert (await written(tmp_path, 1)).exists()
    assert AuditFiles(tmp_path).verify().last == 4


async def test_newest_file_without_records_keeps_numbering(
    tmp_path: Path,
) -> None:
    await written(tmp_path, 2)
    (tmp_path / "000000000003.jsonl").write_bytes(b"\0" * 100 + b"\n")
    async with trail(tmp_path) as files:
        await files.append(record(5))
        assert (files.verify().ok, files.last) == (True, 3)
    assert len(list(tmp_path.glob("*.damaged-*"))) == 1


async def test_full_file_is_rotated_and_old_files_deleted(tmp_path: Path) -> None:
    day = 24 * 60
    async with trail(tmp_path, file_bytes=1, keep_s=2.5 * 24 * 3600) as files:
        for number in range(6):
            await files.append(record(number * day))
        check = files.verify()
        kept = [one.number for one in files.read(AuditQuery()).records]
        gone = files.verify(1)
    assert (check.ok, check.first, check.last) == (True, 4, 6)
    assert kept == [6, 5, 4]
    assert "is no longer kept" in str(gone.problem)


async def test_query_filters_records_and_pages_below_number(tmp_path: Path) -> None:
    async with trail(tmp_path) as files:
        for number in range(6):
            await files.append(record(number, ("susan", "joe")[number % 2]))
        joe = files.read(AuditQuery(actor="joe", limit=2))
        older = files.read(AuditQuery(actor="joe", below=joe.records[-1].number))
        late = files.read(AuditQuery(since=BEGUN + timedelta(minutes=4)))
        none = files.read(AuditQuery(outcome=AuditOutcome.REFUSED))
    assert ([one.number for one in joe.records], joe.more) == ([6, 4], True)
    assert ([one.number for one in older.records], older.more) == ([2], False)
    assert [one.number for one in late.records] == [6, 5]
    assert none.records == []


async def test_audit_files_are_private(tmp_path: Path) -> None:
    file = await written(tmp_path / "audit", 1)
    assert (os.stat(file.parent).st_mode & 0o777, os.stat(file).st_mode & 0o777) == (0o700, 0o600)


async def test_interleaved_writers_keep_chain(tmp_path: Path) -> None:
    """A stopped leader of a cluster can resume while another leads."""
    async with trail(tmp_path) as first:
        await first.append(record(1))
        async with trail(tmp_path, file_bytes=600) as second:
            for minute in range(2, 6):
                await second.append(record(minute, "joe"))
        await first.append(record(7))
        check = first.verify()
    assert (check.ok, check.problem, check.last) == (True, None, 6)
