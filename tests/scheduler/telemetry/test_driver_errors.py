"""Errors reported by the driver: found by minute, newest first, with the holder of the GPU."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.telemetry import Database, GpuSample, HeldSample, Holder
from benchpool_scheduler.telemetry.sqlite_storage import SqliteFile

NOW = 1_800_000_000.0
JOE = Holder(job="j", attempt=1, worker=0, user="joe", project="speech")


def database(folder: Path) -> Database:
    found = Database(SqliteFile(folder), lambda: NOW)
    found.write(
        [
            HeldSample(GpuSample(NOW - ago, 10.0, gpu, activity=0.5, xid=xid), holder)
            for ago, gpu, xid, holder in (
                (3000.0, "a", 31, JOE),
                (2990.0, "a", None, JOE),
                (1200.0, "b", 79, Holder()),
                (1195.0, "c", 13, JOE),
            )
        ]
    )
    return found


def test_newest_errors_come_first_with_number_and_holder(tmp_path: Path) -> None:
    found = database(tmp_path).xids(NOW - 86_400, NOW, 10)
    assert [(it.gpu, it.xid, it.holder.user) for it in found] == [
        ("c", 13, "joe"),
        ("b", 79, None),
        ("a", 31, "joe"),
    ]
    assert found[-1].at == NOW - 3000


def test_errors_are_limited_by_count_and_time(tmp_path: Path) -> None:
    kept = database(tmp_path)
    assert [it.xid for it in kept.xids(NOW - 86_400, NOW, 2)] == [13, 79]
    assert kept.xids(NOW - 900, NOW, 10) == []
