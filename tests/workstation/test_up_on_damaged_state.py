"""``benchpool up`` on damaged state either starts or reports the remedy within seconds."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.workstation.options import account
from benchpool_support.workstation import COMMAND, DidNotStart, RunningWorkstation, start

pytestmark = pytest.mark.slow

SLEEPER = {"kind": "command", "argv": ["sleep", "600"]}


def running_job(up: RunningWorkstation, gpus: int) -> dict[str, Any]:
    sent = up.scheduler.post("/jobs", json={"entry": SLEEPER, "name": "precious", "gpus": gpus})
    assert sent.status_code == 201, sent.text
    return up.wait_job(sent.json()["id"], "running")


def typed(up: RunningWorkstation, *words: str) -> str:
    """Return the output of a command."""
    service = up.ready["scheduler_api"].removesuffix("/api/v1")
    done = subprocess.run(
        [*COMMAND, *words, "--url", service, "--token", up.ready["admin_token"]],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    return done.stdout


def refused(state: Path) -> str:
    """Return the message of a refused start."""
    with pytest.raises(DidNotStart) as ended, start(state):
        pass
    return str(json.loads(ended.value.output)["error"]["message"])


@pytest.mark.timeout(300)
def test_job_and_bench_survive_damaged_databases(tmp_path: Path) -> None:
    state, me = tmp_path / "state", account()
    with start(state, clear=False) as up:
        job = running_job(up, 3)
        up.start_server(me, gpus=1)
        pid, (bench,) = up.server_pid(me), up.leases(me)
    database, hub = state / "scheduler" / "pool.sqlite", state / "hub" / "jupyterhub.sqlite"
    damaged = bytearray(database.read_bytes())
    damaged[4096:] = bytes(len(damaged) - 4096)
    database.write_bytes(damaged)
    hub.write_bytes(b"x" * 100 + hub.read_bytes()[100:])
    with start(state) as up:
        assert up.ready["self_test"]["state"] == "refused"
        output = typed(up, "status").replace("\n", "")
        assert str(database) in output
        assert f"{hub}.damaged" in output
        # The Hub adopts its server, and the scheduler thereby adopts the bench.
        assert up.server_pid(me) == pid
        up.wait_leases(me, 1)
        assert [(it["id"], it["gpus"]) for it in up.leases(me)] == [(bench["id"], bench["gpus"])]
        listed = typed(up, "adopt")
        assert str(hub) in listed
        assert job["id"] in listed
        assert "precious" in listed
        typed(up, "adopt", job["id"])
        again = up.wait_job(job["id"], "running")
        assert (again["name"], again["attempt"]) == ("precious", 1)
        assert "All running jobs and benches are known" in typed(up, "adopt", "--go-on")
        assert str(hub) not in typed(up, "status").replace("\n", "")
        assert up.scheduler.post("/jobs", json={"entry": SLEEPER}).status_code == 201
        up.stop_server(me)
        up.wait_leases(me, 0)


@pytest.mark.timeout(300)
def test_unreadable_database_is_reported_and_unchanged(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with start(state):
        pass
    database = state / "scheduler" / "pool.sqlite"
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA user_version = 99")
    sentence = refused(state)
    assert str(database) in sentence
    assert "version 99" in sentence
