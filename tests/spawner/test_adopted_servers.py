"""A restarted Hub knows its servers again, and takes no other process for one of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from jupyterhub.spawner import SimpleLocalProcessSpawner
from traitlets.config import Config

from benchpool_scheduler.worker import process_identity
from benchpool_spawner.local import INHERITED, LocalGPUSpawner

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
