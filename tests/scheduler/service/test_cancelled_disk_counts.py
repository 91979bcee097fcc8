"""A cancelled count of disk use leaves no process and no open file."""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

from benchpool_scheduler.service.jobs import disk_use

LARGE = Path("/usr")
"""Folder whose count takes longer than its cancellation."""


def open_files() -> AbstractSet[str]:
    """Return the numbers of this process's open descriptors."""
    return {it for it in os.listdir("/proc/self/fd") if Path("/proc/self/fd", it).exists()}


def children() -> AbstractSet[str]:
    """Return the IDs of this process's children."""
    threads = Path("/proc/self/task").glob("*/children")
    return {child for thread in threads for child in thread.read_text().split()}


@pytest.fixture(autouse=True)
def gone_in_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the timeout for killed processes, for busy machines."""
    monkeypatch.setattr(disk_use, "GONE_S", 120.0)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 20])
async def test_cancelled_count_leaves_no_process_or_file(turns: int) -> None:
    gc.collect()  # remains of earlier tests
    processes, files = children(), open_files()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        counting = asyncio.create_task(disk_use.counted([LARGE]))
        for _ in range(turns):
            await asyncio.sleep(0)
        counting.cancel()
        await asyncio.wait([counting])
        assert counting.cancelled()
        assert not children() - processes
        assert not open_files() - files
        gc.collect()
    assert [str(it.message) for it in caught] == []


async def test_slow_count_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    processes, files = children(), open_files()
    monkeypatch.setattr(disk_use, "MOST_S", 0.01)
    assert await disk_use.counted([LARGE]) == {}
    assert not children() - processes
    assert not open_files() - files


async def test_count_without_du_returns_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await disk_use.counted([tmp_path]) == {}
