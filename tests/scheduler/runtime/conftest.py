"""Fixtures: a real local runtime over an empty state folder, and a listener to its events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_support.workers import Listener, end_all_workers


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def runtime(state: Path) -> AsyncIterator[LocalRuntime]:
    runtime = LocalRuntime(state, simulated(4))
    await runtime.open([])
    yield runtime
    await runtime.close()
    await end_all_workers(state)


@pytest.fixture
async def listener(runtime: LocalRuntime) -> AsyncIterator[Listener]:
    listener = Listener(runtime)
    yield listener
    await listener.close()
