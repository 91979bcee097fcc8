"""A restarted Hub knows its servers again, and takes no other process for one of them."""

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
    """A spawner of a Hub that has just started."""
    fresh = LocalGPUSpawner()
    fresh.load_state(state)
    return fresh


async def test_a_server_that_runs_on_is_found_again(process: subprocess.Popen[bytes]) -> None:
    state = {
        "pid": process.pid,
        "process": process_identity.identity(process.pid),
        "benchpool": GPUS,
    }
    found = spawner(state)
    assert await found.poll() is None
    assert found.get_state() == state


async def test_another_process_with_its_number_is_not_taken_for_it(
    process: subprocess.Popen[bytes],
) -> None:
    known = f"{process_identity.boot_id()}:{process.pid}:1"
    found = spawner({"pid": process.pid, "process": known, "benchpool": GPUS})
    assert await found.poll() == 0
    assert found.pid == 0
    # The lease is not forgotten with the process: it is still to be given back.
    assert found.get_state()["benchpool"] == GPUS


async def test_one_that_ended_and_was_not_buried_has_ended(
    process: subprocess.Popen[bytes],
) -> None:
    known = process_identity.identity(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    found = spawner({"pid": process.pid, "process": known})
    assert await found.poll() == 0


def test_servers_inherit_what_is_on_the_list_and_nothing_else() -> None:
    assert LocalGPUSpawner().env_keep == list(INHERITED)
    assert not [name for name in INHERITED if "TOKEN" in name or "BENCHPOOL" in name]


def test_settings_of_jupyterhubs_own_spawner_stay_in_force() -> None:
    config = Config({"SimpleLocalProcessSpawner": {"home_dir_template": "/homes/{username}"}})
    assert LocalGPUSpawner(config=config).home_dir_template == "/homes/{username}"
    assert issubclass(LocalGPUSpawner, SimpleLocalProcessSpawner)


class Database:
    """What the Hub has of a server, and what it has written down of that."""

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
    """A server that was just started, of which the Hub has not written down the process."""
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


async def test_of_a_hub_killed_amid_a_start_the_server_ends_before_its_gpus_are_given_back(
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


async def test_a_start_that_was_written_down_runs_on(started: LocalGPUSpawner) -> None:
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


def test_a_server_whose_hub_dies_before_it_has_begun_does_not_begin(tmp_path: Path) -> None:
    forked, began = tmp_path / "forked", tmp_path / "began"
    hub = subprocess.Popen([sys.executable, "-c", HUB, str(forked), str(began)])
    until(forked.exists)
    server = process_identity.identity(int(forked.read_text()))
    hub.kill()
    hub.wait()
    assert server is not None
    until(lambda: process_identity.identity(int(forked.read_text())) != server)
    assert not began.exists()
