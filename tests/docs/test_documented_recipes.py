"""Recipes on the pages for other programs work as written, with a real pool."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
import yaml

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.notifications import (
    NewAddress,
    NotificationChange,
    NotificationEvent,
)
from benchpool_support import checkout, direct
from benchpool_support.loopback import free_port
from benchpool_support.serving import Served, served
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow

DOCS = checkout.ROOT / "docs"
GITHUB, GITLAB = map(
    yaml.safe_load, re.findall(r"```yaml\n(.*?)```", (DOCS / "howto" / "ci.md").read_text(), re.S)
)
COMMANDS = {
    "github": [step["run"] for step in GITHUB["jobs"]["train"]["steps"] if "run" in step],
    "gitlab": [*GITLAB["train"]["script"], *GITLAB["train"]["after_script"]],
}
SECRET = "a secret of sixteen signs or more"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    state = tmp_path / "state"
    state.mkdir()
    site = {"kinds": ["https"], "hosts": ["127.0.0.1"]}
    (state / "notifications.yaml").write_text(json.dumps(site))
    with served(state) as running:
        yield running


@pytest.fixture
def environ(service: Served) -> Mapping[str, str]:
    own = {
        "BENCHPOOL_URL": service.url,
        "BENCHPOOL_TOKEN": "susan",
        "GITHUB_RUN_ID": "17",
        "GITHUB_RUN_ATTEMPT": "1",
        "CI_JOB_ID": "18",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    return {**os.environ, **own}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that stands for a checked-out repository."""
    made = tmp_path / "project"
    made.mkdir()
    return made


def run(command: str, environ: Mapping[str, str], folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        env=environ,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("of", COMMANDS)
def test_pipeline_shows_log_and_ends_with_job_status(
    of: str, service: Served, environ: Mapping[str, str], folder: Path
) -> None:
    install, submit, cancel = COMMANDS[of]
    assert install == "pip install benchpool"
    (folder / "train.py").write_text("print('epoch 1')\nraise SystemExit(7)\n")
    status, text = run(submit, environ, folder)
    assert (status, "epoch 1" in text) == (7, True), text
    assert run(submit, environ, folder)[0] == 7
    with service.client("susan") as client:
        assert len(client.jobs()) == 1
    assert run(cancel, environ, folder)[0] == 0


@pytest.mark.parametrize("of", COMMANDS)
def test_cancelled_pipeline_ends_job(
    of: str, service: Served, environ: Mapping[str, str], folder: Path
) -> None:
    _, submit, cancel = COMMANDS[of]
    (folder / "train.py").write_text("import time\ntime.sleep(3600)\n")
    sent = subprocess.Popen(["bash", "-c", submit], env=environ, cwd=folder)
    with service.client("susan") as client:
        until(client.jobs, "the job was sent")
        sent.terminate()
        sent.wait()
        assert run(cancel, environ, folder)[0] == 0
        (job,) = client.jobs()
        until(lambda: client.job(job.id).job.state == "cancelled", "it is cancelled")


def test_webhook_receiver_accepts_only_genuine_requests(service: Served) -> None:
    port = free_port()
    command = [sys.executable, str(DOCS / "examples" / "take_webhook.py"), str(port)]
    receiver = subprocess.Popen(
        command, env={**os.environ, "SECRET": SECRET}, stdout=subprocess.PIPE, text=True
    )
    assert receiver.stdout is not None
    try:
        url = f"http://127.0.0.1:{port}/"
        forged = {"X-Benchpool-Timestamp": "1", "X-Benchpool-Signature": "sha256=0"}
        until(lambda: _listens(url), "it listens")
        body = b'{"messages": [{"event": "failed", "text": "", "url": ""}]}'
        assert direct.post(url, content=body, headers=forged).status_code == 403
        events = [NotificationEvent.ENDED, NotificationEvent.FAILED]
        with service.client("susan") as client:
            client.change_notifications(NotificationChange(NewAddress(url, SECRET), events=events))
            job = client.submit(JobSubmission(entry=CommandEntry(["false"])))
            client.wait(job.id)
        line = receiver.stdout.readline()
    finally:
        receiver.kill()
        receiver.wait()
    assert line.startswith("failed ")
    assert job.id[:8] in line


def _listens(url: str) -> bool:
    try:
        direct.get(url, timeout=30)
    except httpx.ConnectError:
        return False
    return True
