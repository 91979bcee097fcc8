"""``benchpool backup`` while it runs and ``restore`` after a loss; jobs keep running."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from benchpool_support.workstation import COMMAND, RunningWorkstation, start

pytestmark = pytest.mark.slow

SLEEPER = {"kind": "command", "argv": ["sleep", "600"]}


def benchpool(*words: str, status: int = 0, put_in: bytes = b"") -> bytes:
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, input=put_in, timeout=120, check=False
    )
    assert done.returncode == status, done
    return done.stdout if status == 0 else done.stderr


def where(up: RunningWorkstation) -> list[str]:
    service = up.ready["scheduler_api"].removesuffix("/api/v1")
    return ["--url", service, "--token", up.ready["admin_token"]]


def running_job(up: RunningWorkstation, name: str) -> dict[str, Any]:
    sent = up.scheduler.post("/jobs", json={"entry": SLEEPER, "name": name, "gpus": 2})
    assert sent.status_code == 201, sent.text
    return up.wait_job(sent.json()["id"], "running")


@pytest.mark.timeout(400)
def test_restore_keeps_jobs_running(tmp_path: Path) -> None:
    state, copy = tmp_path / "state", tmp_path / "copy"
    with start(state, clear=False) as up:
        up.add_user("susan")
        before = running_job(up, "before")
        benchpool("backup", str(copy), *where(up))
        names = {it.name for it in copy.iterdir()}
        databases = {"pool.sqlite", "jupyterhub.sqlite"}
        assert names == {*databases, "benchpool.yaml", "configurations", "audit"}
        assert b"not empty" in benchpool("backup", str(copy), *where(up), status=2)
        packed = benchpool("backup", "-", *where(up))
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            assert {name.partition("/")[0] for name in tar.getnames()} == names
        after = running_job(up, "after")
        refused = benchpool("restore", str(copy), "--state", str(state), status=4)
        assert b"already running" in refused
        kinds = {it.name.rpartition("-")[2] for it in (state / "backups").iterdir()}
        assert kinds == {"asked"}

    (state / "scheduler" / "pool.sqlite").write_bytes(b"")
    (state / "hub" / "jupyterhub.sqlite").unlink()
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "pool.sqlite").write_bytes(b"nothing of the kind")
    output = benchpool("restore", str(damaged), "--state", str(state), status=2)
    assert b"Nothing was changed" in output
    done = benchpool("restore", "-", "--state", str(state), put_in=packed).decode()
    assert "pool.sqlite was restored" in done

    with start(state) as up:
        assert up.hub.get("/users/susan").status_code == 200
        again = up.wait_job(before["id"], "running")
        assert (again["attempt"], again["started"]) == (1, before["started"])
        # A job begun after the backup keeps running too, and is known again after its adoption.
        listed = json.loads(benchpool("adopt", "--json", *where(up)))
        assert [(it["id"], it["name"]) for it in listed["unknown"]] == [(after["id"], "after")]
        assert listed["hold"] is None
        benchpool("adopt", after["id"], *where(up))
        assert up.wait_job(after["id"], "running")["attempt"] == 1


def test_backup_of_newer_release_is_rejected(tmp_path: Path) -> None:
    copy, state = tmp_path / "copy", tmp_path / "state"
    copy.mkdir()
    with sqlite3.connect(copy / "pool.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
        db.execute("CREATE TABLE jobs (id TEXT)")
    output = benchpool("restore", str(copy), "--state", str(state), status=2)
    assert b"version 99" in output
    assert not (state / "scheduler" / "pool.sqlite").exists()
