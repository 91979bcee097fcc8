"""Schedules are included in copies of a volume and restored from them."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.store.schedule_files import FOLDER, NAME, ScheduleFiles, ScheduleRecord
from benchpool_scheduler.store.volume_copies import VolumeCopies, copy_pool, restore_pool

NIGHTLY = ScheduleRecord(
    id="k" * 26,
    name="nightly",
    user="susan",
    project="vision",
    created=1.0,
    when="night at 2",
    cron="0 2 * * *",
    zone="Europe/Berlin",
    submission=JobSubmission(entry=CommandEntry(["true"])),
    seen=1.0,
)


def test_schedule_is_copied_and_restored_if_missing(tmp_path: Path) -> None:
    volume, other = tmp_path / "volume", tmp_path / "other"
    ScheduleFiles(volume / "scheduler" / FOLDER).write(NIGHTLY)
    copies = VolumeCopies(tmp_path / "copies", 3)
    copy_pool(volume, copies)
    newest = copies.newest()
    assert newest is not None
    (summary,) = restore_pool(other, newest)
    assert "1 schedule," in summary
    assert ScheduleFiles(other / "scheduler" / FOLDER).read() == ([NIGHTLY], [])
    assert NAME.fullmatch(f"{FOLDER}/{NIGHTLY.id}.json")
