"""The Hub restarts a service as soon as its process ends, before its own poll."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from subprocess import Popen
from typing import Any

import pytest
from jupyterhub.spawner import LocalProcessSpawner

from benchpool_spawner import watched_services

SLEEPER = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
A_DAY_S = 86_400


class WatchedSpawner(LocalProcessSpawner):  # type: ignore[misc]
    """A spawner like those of the Hub's services, with a very long poll interval."""


watched_services.watch_all(WatchedSpawner)


@pytest.fixture
def process() -> Iterator[Popen[bytes]]:
    with Popen(SLEEPER) as running:
        yield running
        running.kill()


def spawner_of(process: Popen[bytes]) -> Any:
    spawner = WatchedSpawner(cmd=SLEEPER, poll_interval=A_DAY_S)
    spawner.proc, spawner.pid = process, process.pid
    return spawner


async def test_killed_service_is_noticed(process: Popen[bytes]) -> None:
    noticed, spawner = asyncio.Event(), spawner_of(process)
    spawner.add_poll_callback(noticed.set)
    spawner.start_polling()
    os.kill(process.pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        await noticed.wait()
    assert process.returncode == -signal.SIGKILL


async def test_stopped_service_is_not_restarted(
    process: Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_services, "FIRST_PAUSE_S", 0.0)
    noticed: list[str] = []
    spawner, over = spawner_of(process), asyncio.Event()
    spawner.add_poll_callback(lambda: noticed.append("stopped"))
    spawner.start_polling()
    spawner.stop_polling()

    async def end() -> None:
        over.set()

    # A second watch of the same process, which reports the end later than the first would.
    watched_services.EndWatch(process.pid, lambda lived_s: 0.5, end)
    process.kill()
    async with asyncio.timeout(60):
        await over.wait()
    assert noticed == []


def test_restart_delay_grows_with_repeated_exits() -> None:
    pause, pauses = 0.0, []
    for _ in range(10):
        pause = watched_services.next_pause(pause, 1.0)
        pauses.append(pause)
    assert pauses[:3] == [0.2, 0.4, 0.8]
    assert pauses[-1] == watched_services.LONGEST_PAUSE_S
    assert watched_services.next_pause(pause, watched_services.STEADY_S + 1) == 0.2
