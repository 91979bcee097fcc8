"""Counting what files take on their disk leaves nothing behind when it is given up."""

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
"""Takes longer to count than it takes to give up."""


def open_files() -> AbstractSet[str]:
    """Return what this process has open, by number."""
    return {it for it in os.listdir("/proc/self/fd") if Path("/proc/self/fd", it).exists()}


def children() -> AbstractSet[str]:
    """Return the numbers of this process's children."""
    threads = Path("/proc/self/task").glob("*/children")
    return {child for thread in threads for child in thread.read_text().split()}


@pytest.fixture(autouse=True)
def gone_in_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine what was killed may take longer to go."""
    monkeypatch.setattr(disk_use, "GONE_S", 120.0)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 20])
async def test_no_process_and_no_file_is_left(turns: int) -> None:
    gc.collect()  # what others have left
    processes, files = children(), open_files()
    with warnings.catch_warnings(record=True) as told:
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
    assert [str(it.message) for it in told] == []


async def test_a_count_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    processes, files = children(), open_files()
    monkeypatch.setattr(disk_use, "MOST_S", 0.01)
    assert await disk_use.counted([LARGE]) == {}
    assert not children() - processes
    assert not open_files() - files


async def test_without_the_program_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await disk_use.counted([tmp_path]) == {}
