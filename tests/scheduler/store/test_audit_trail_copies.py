"""A backup includes the audit trail, and a restore only adds missing records."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path

from benchpool_scheduler.contract.audit import AuditRecord
from benchpool_scheduler.store import audit_copies
from benchpool_scheduler.store.audit_copies import PutBack
from benchpool_scheduler.store.audit_files import AuditFiles

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def write(trail: Path, number: int, actor: str = "susan") -> None:
    """Write records to a trail, about three per file."""

    async def append() -> None:
        files = AuditFiles(trail, file_bytes=600)
        await files.open()
        for each in range(number):
            await files.append(AuditRecord(number=0, at=NOW, actor=actor, action=f"act-{each}"))
        await files.close()

    asyncio.run(append())


def holds(trail: Path) -> int:
    """Verify a trail and return the number of its newest record."""
    check = AuditFiles(trail).verify()
    assert check.ok, check.problem
    return check.last


def test_lost_trail_is_restored_and_continues(tmp_path: Path) -> None:
    trail, copy = tmp_path / "audit", tmp_path / "copy"
    write(trail, 10)
    audit_copies.copy_into(trail, copy)
    assert len(list(copy.iterdir())) > 2
    shutil.rmtree(trail)
    found = audit_copies.put_back(copy, trail)
    assert (found.put, found.left, found.others) == (len(list(copy.iterdir())), 0, 0)
    assert holds(trail) == 10
    write(trail, 1)
    assert holds(trail) == 11
    assert {file.stat().st_mode & 0o777 for file in trail.iterdir()} == {0o600}


def test_later_records_survive_restore(tmp_path: Path) -> None:
    trail, copy = tmp_path / "audit", tmp_path / "copy"
    write(trail, 10)
    audit_copies.copy_into(trail, copy)
    write(trail, 5)
    found = audit_copies.put_back(copy, trail)
    assert (found.put, found.others) == (0, 0)
    assert holds(trail) == 15


def test_missing_newest_records_are_restored(tmp_path: Path) -> None:
    trail, copy = tmp_path / "audit", tmp_path / "copy"
    write(trail, 10)
    audit_copies.copy_into(trail, copy)
    max(trail.iterdir()).unlink()
    assert holds(trail) < 10
    assert audit_copies.put_back(copy, trail).put == 1
    assert holds(trail) == 10


def test_different_trail_is_unchanged_and_reported(tmp_path: Path) -> None:
    trail, copy = tmp_path / "audit", tmp_path / "copy"
    write(tmp_path / "other", 10)
    audit_copies.copy_into(tmp_path / "other", copy)
    write(trail, 2, "joe")
    before = {file.name: file.read_bytes() for file in trail.iterdir()}
    found = audit_copies.put_back(copy, trail)
    assert (found.put, found.left, found.others) == (0, 0, len(list(copy.iterdir())))
    assert holds(trail) == 2
    assert {name: (trail / name).read_bytes() for name in before} == before


def test_missing_trail_is_not_copied(tmp_path: Path) -> None:
    audit_copies.copy_into(tmp_path / "none", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert audit_copies.put_back(tmp_path / "copy", tmp_path / "none") == PutBack()
