"""A restarted Hub adopts its running servers and no other process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.spawner import SimpleLocalProcessSpawner
from traitlets.config import Config

from benchpool_scheduler.worker import process_identity
from benchpool_spawner.local import INHERITED, LocalGPUSpawner
from benchpool_support.waiting import until

GPUS = {"spawn": "s1", "lease": "l1", "gpus": ["GPU-0"]}


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen(["sleep", "60"])
    yield running
    running.kill()
    running.wait()


def spawner(state: dict[str, Any]) -> LocalGPUSpawner:
    """Return a spawner of a Hub that has just started."""
    fresh = LocalGPUSpawner()
    fresh.load_state(state)
    return fresh


async def test_running_server_is_adopted(process: subprocess.Popen[bytes]) -> None:
    state = {
        "pid": process.pid,
        "process": process_identity.identity(process.pid),
        "benchpool": GPUS,
    }
    found = spawner(state)
    assert await found.poll() is None
    assert found.get_state() == state


async def test_reused_pid_is_not_adopted(
    process: subprocess.Popen[bytes],
) -> None:
    known = f"{process_identity.boot_id()}:{process.pid}:1"
    found = spawner({"pid": process.pid, "process": known, "benchpool": GPUS})
    assert await found.poll() == 0
    assert found.pid == 0
    # The lease is kept after the process is gone: it still has to be released.
    assert found.get_state()["benchpool"] == GPUS


async def test_zombie_counts_as_ended(
    process: subprocess.Popen[bytes],
) -> None:
    known = process_identity.identity(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # now a zombie
    found = spawner({"pid": process.pid, "process": known})
    assert await found.poll() == 0


def test_servers_inherit_only_listed_variables() -> None:
    assert LocalGPUSpawner().env_keep == list(INHERITED)
    assert not [name for name in INHERITED if "TOKEN" in name or "BENCHPOOL" in name]


def test_settings_of_jupyterhub_spawner_stay_in_force() -> None:
    config = Config({"SimpleLocalProcessSpawner": {"home_dir_template": "/homes/{username}"}})
    assert LocalGPUSpawner(config=config).home_dir_template == "/homes/{username}"
    assert issubclass(LocalGPUSpawner, SimpleLocalProcessSpawner)


class Database:
    """The Hub's record of a server, and the states that it has saved."""

    server = None

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.written: dict[str, Any] = {}

    def commit(self) -> None:
        self.written = dict(self.state)


@pytest.fixture
async def started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalGPUSpawner]:
    """Yield a server that has just started and whose process the Hub has not saved."""
    inherited = {"PATH": os.environ["PATH"]}
    monkeypatch.setattr(SimpleLocalProcessSpawner, "get_env", lambda _: dict(inherited))
    monkeypatch.setattr(SimpleLocalProcessSpawner, "get_args", lambda _: ["600"])
    one = LocalGPUSpawner(home_dir=str(tmp_path), cmd=["sleep"])
    database = Database()
    one.orm_spawner, one.user = database, SimpleNamespace(name="susan", db=database)
    one.load_state({"benchpool": GPUS})
    await one.start()
    yield one
    one.proc.kill()
    one.proc.wait()


async def test_server_of_interrupted_start_ends_before_release(
    started: LocalGPUSpawner,
) -> None:
    written = started.orm_spawner.written
    assert "pid" not in written
    assert started.proc.poll() is None
    found = spawner(written)
    assert await found.poll() == 0
    assert started.proc.wait(30) == -signal.SIGKILL
    kept = found.get_state()
    assert kept["benchpool"] == GPUS
    assert not {"pid", "process"} & set(kept)


async def test_saved_start_keeps_running(started: LocalGPUSpawner) -> None:
    found = spawner(started.get_state())
    assert await found.poll() is None
    assert started.proc.poll() is None
    assert found.get_state() == started.get_state()


HUB = """
import os, subprocess, sys, time
from benchpool_spawner.local import unless_alone

def prepare(hub=os.getpid()):
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    while os.getppid() == hub:
        time.sleep(0.01)

subprocess.Popen(["touch", sys.argv[2]], preexec_fn=unless_alone(prepare))
"""


def test_server_does_not_begin_after_hub_death(tmp_path: Path) -> None:
    forked, began = tmp_path / "forked", tmp_path / "began"
    hub = subprocess.Popen([sys.executable, "-c", HUB, str(forked), str(began)])
    until(forked.exists)
    server = process_identity.identity(int(forked.read_text()))
    hub.kill()
    hub.wait()
    assert server is not None
    until(lambda: process_identity.identity(int(forked.read_text())) != server)
    assert not began.exists()
