"""A real local runtime over an empty state folder, and a listener to its events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_scheduler.testing.workers import Listener


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def runtime(state: Path) -> AsyncIterator[LocalRuntime]:
    runtime = LocalRuntime(state, simulated(4))
    await runtime.open([])
    yield runtime
    await runtime.close()
    # Whatever a failed test left: a service that expects nobody ends everybody.
    last = LocalRuntime(state, simulated(4))
    await last.open([])
    await last.close()


@pytest.fixture
async def listener(runtime: LocalRuntime) -> AsyncIterator[Listener]:
    listener = Listener(runtime)
    yield listener
    await listener.close()
