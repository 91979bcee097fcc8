"""Loss of the whole state folder while jobs run, and the restore from a backup."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.worker import process_identity
from benchpool_support.waiting import until
from benchpool_support.workstation import COMMAND, RunningWorkstation, start

pytestmark = pytest.mark.slow

NOTE_PID = (
    "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); time.sleep(600)"
)


def benchpool(*words: str, cwd: Path) -> str:
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, timeout=120, check=False, cwd=cwd, text=True
    )
    assert done.returncode == 0, done
    return done.stdout


def where(up: RunningWorkstation) -> list[str]:
    service = up.ready["scheduler_api"].removesuffix("/api/v1")
    return ["--url", service, "--token", up.ready["admin_token"]]


def pids(file: Path) -> list[int]:
    """Return the process IDs of a job's attempts, in order."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def sleeper(up: RunningWorkstation, file: Path) -> dict[str, Any]:
    """Send a job that writes its process ID to a file.

    Return the job once it runs and has written the file.
    """
    entry = {"kind": "command", "argv": [sys.executable, "-c", NOTE_PID, str(file)]}
    sent = up.scheduler.post("/jobs", json={"entry": entry, "name": file.name, "gpus": 2})
    assert sent.status_code == 201, sent.text
    job = up.wait_job(sent.json()["id"], "running")
    until(lambda: len(pids(file)) == 1)
    return job


def with_code(up: RunningWorkstation, tmp_path: Path) -> str:
    """Send a job with uploaded code that waits for more GPUs than are free."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("print('trained')\n")
    words = ["submit", "--name", "waits", "--gpus", "7", *where(up), "train.py"]
    benchpool(*words, cwd=code)
    (found,) = [one for one in up.scheduler.get("/jobs").json() if one["name"] == "waits"]
    return str(found["id"])


@pytest.mark.timeout(400)
def test_restore_restarts_saved_jobs_and_reports_lost_jobs(tmp_path: Path) -> None:
    state, copy = tmp_path / "state", tmp_path / "copy"
    with start(state, clear=False) as up:
        up.add_user("susan")
        before = sleeper(up, tmp_path / "before")
        waits = with_code(up, tmp_path)
        benchpool("backup", str(copy), *where(up), cwd=tmp_path)
        after = sleeper(up, tmp_path / "after")
    shutil.rmtree(state)

    output = benchpool("restore", str(copy), "--state", str(state), cwd=tmp_path)
    running = {name: int(pid) for pid, name in re.findall(r"(\d+) \(job (\w+)\)", output)}
    assert running == {name: pids(tmp_path / name)[0] for name in ("before", "after")}
    os.kill(running["after"], signal.SIGKILL)  # as the message advises

    with start(state) as up:
        assert up.hub.get("/users/susan").status_code == 200
        assert up.scheduler.get(f"/jobs/{after['id']}").status_code == 404
        # Its second attempt has its GPUs exclusively.
        until(lambda: len(pids(tmp_path / "before")) == 2)
        assert process_identity.start_ticks(pids(tmp_path / "before")[0]) is None
        up.wait_job(before["id"], "running")
        attempts = up.scheduler.get(f"/jobs/{before['id']}").json()["attempts"]
        assert [one["ended_by"] for one in attempts] == ["lost", None]
        # The code of unfinished jobs is in the backup.
        up.scheduler.post(f"/jobs/{before['id']}/cancel", json={})
        up.wait_job(waits, "succeeded")
