"""Daily backups of the databases: one a day, and none during a start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchpool_scheduler.service.administration import backups
from benchpool_support.pools import make_pool, opened
from benchpool_support.waiting import until_async


def daily(state: Path) -> list[Path]:
    """Return the daily backups, the oldest first."""
    return sorted((state / "backups").glob("[!.]*-daily"))


async def test_first_daily_backup_waits_for_first_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "LOOK_S", 0.1)
    async with opened(make_pool(tmp_path / "state", backups_kept=7)):
        assert daily(tmp_path / "state") == []
        (copy,) = await until_async(lambda: daily(tmp_path / "state"))
    assert (copy / "pool.sqlite").is_file()


async def test_daily_backup_repeats_after_one_day(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path / "state", backups_kept=7)) as pool:
        for _ in range(2):
            await pool.backups.make_daily()
        (first,) = daily(tmp_path / "state")
        yesterday = first.stat().st_mtime - backups.DAY_S
        os.utime(first, (yesterday, yesterday))
        await pool.backups.make_daily()
    assert len(daily(tmp_path / "state")) == 2
