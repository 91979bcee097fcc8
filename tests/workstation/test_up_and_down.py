"""``benchpool up`` and ``down`` as typed: ready line, second start, running jobs, exit status."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.workstation.options import account
from benchpool_support import direct
from benchpool_support.waiting import until
from benchpool_support.workstation import (
    COMMAND,
    DidNotStart,
    RunningWorkstation,
    start,
)

pytestmark = pytest.mark.slow

READY_KEYS = {"event", "url", "login_url", "hub_api", "scheduler_api", "admin_token",
              "admin_token_file", "state", "gpus", "self_test", "seconds"}  # fmt: skip
SLEEPER = {"kind": "command", "argv": ["sleep", "600"]}


def benchpool(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def running_job(up: RunningWorkstation) -> dict[str, Any]:
    """Send a job that sleeps, and wait until it runs."""
    sent = up.scheduler.post("/jobs", json={"entry": SLEEPER, "name": "sleeper", "gpus": 2})
    assert sent.status_code == 201, sent.text
    return up.wait_job(sent.json()["id"], "running")


@pytest.mark.timeout(480)
def test_jobs_survive_ctrl_c_and_are_adopted(tmp_path: Path, record_property: Any) -> None:
    state = tmp_path / "state"
    with start(state, auth="one-time", clear=False) as first:
        assert set(first.ready) == READY_KEYS
        assert set(first.ready["self_test"]) == {"job", "state", "seconds"}
        assert first.ready["self_test"]["state"] == "succeeded"
        assert [gpu["simulated"] for gpu in first.ready["gpus"]] == [True] * 8
        assert set(first.ready["gpus"][0]) == {"uuid", "model", "simulated"}
        token_file = Path(first.ready["admin_token_file"])
        assert token_file == state / "admin-token"
        assert token_file.read_text().strip() == first.ready["admin_token"]
        assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
        assert first.hub.get("/user").json()["admin"]

        check_login_links(first)
        job = running_job(first)
        first.start_server(account(), gpus=1)
        pid = first.server_pid(account())
        held = first.held(account())

        second = benchpool("up", "--state", str(state), "--json", "--port", "0")
        assert (second.returncode, "already running" in second.stdout) == (1, True)

        assert first.stop(signal.SIGINT) == 0
        goodbye = first.wait_event("stopping")
        assert (goodbye["jobs"], goodbye["servers"]) == (1, 1)
        assert not (state / "up.json").exists()

    with start(state, auth="one-time") as again:
        record_property("seconds of the second start", again.ready["seconds"])
        for key in ("url", "hub_api", "scheduler_api", "admin_token", "gpus"):
            assert again.ready[key] == first.ready[key]
        found = again.wait_job(job["id"], "running")
        assert (found["attempt"], found["started"]) == (job["attempt"], job["started"])
        again.wait_server(account())
        assert again.server_pid(account()) == pid
        assert again.held(account()) == held

        shown = benchpool("show", job["id"], BENCHPOOL_STATE=str(state)).stdout
        assert f"{again.ready['url']}services/benchpool/jobs/{job['id']}" in shown

        serve = ("serve", "web", "--", "python3", "-m", "http.server", "-b", "127.0.0.1", "{port}")
        served = benchpool(*serve, BENCHPOOL_STATE=str(state))
        assert served.returncode == 0, served.stderr
        until_service(again, "web", "ready")

        down = benchpool("down", "--state", str(state), "--jobs", "pause")
        assert (down.returncode, down.stderr) == (0, "")
        assert again.process.wait(timeout=40) == 0
    # Running jobs are counted, and the printed command ends them.
    down = benchpool("down", "--state", str(state), "--json")
    error = json.loads(down.stdout)["error"]
    assert (down.returncode, error["code"]) == (4, "not-running")
    assert "0 jobs and 1 notebook server of it are still running" in error["message"]
    advised = re.search(r"`benchpool (down [^`]*)` stops them", error["message"])
    assert advised is not None, error
    assert identity(pid) is not None
    ended = benchpool(*shlex.split(advised[1]))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "1 service stopped; `benchpool wake-service NAME` starts one again: web." in ended.stdout
    assert identity(pid) is None  # ended, even as a zombie
    down = benchpool("down", "--state", str(state))
    assert "No benchpool runs from" in down.stderr
    assert f"`benchpool up --state {state}`" in down.stderr
    assert "run on" not in down.stderr  # no replica has replaced the ended one
    lost = benchpool("jobs", BENCHPOOL_STATE=str(state))
    assert (lost.returncode, "export BENCHPOOL_STATE=DIR" in lost.stderr) == (4, True)


def until_service(up: RunningWorkstation, name: str, state: str) -> None:
    """Wait until a service is in a state."""
    until(
        lambda: up.scheduler.get(f"/services/{name}").json(),
        f"service {name} is {state}",
        holds=lambda one: one["state"] == state,
    )


def check_login_links(up: RunningWorkstation) -> None:
    """Check that the ready line's link logs in once and that the command creates another."""
    with direct.Client(follow_redirects=True, timeout=60) as browser:
        page = browser.get(up.ready["login_url"])
        assert (page.status_code, page.url.path) == (200, "/hub/home")
        assert "key=" not in str(page.url)
        assert account() in page.text
    forged = {"X-Real-Ip": "10.9.9.9", "X-Forwarded-For": "10.9.9.9"}
    late = direct.get(up.ready["login_url"], headers=forged)
    assert (late.status_code, "benchpool login-link" in late.text) == (403, True)
    assert up.wait_logins(2) == [("", "refused"), (account(), "done")]
    assert {one["address"] for one in up.wait_audit("login", 2)} == {"127.0.0.1"}
    fresh = benchpool("login-link", "--state", str(up.state)).stdout.strip()
    assert direct.get(fresh).status_code == 302
    assert (up.state / "logs" / "hub.log").read_text().count(fresh.partition("key=")[2]) == 0


def test_invalid_configuration_exits_with_2_and_names_line(tmp_path: Path) -> None:
    config = tmp_path / "pool.yaml"
    config.write_text("version: 1\nbuild: {defautl: 1}\n")
    with pytest.raises(DidNotStart) as ended, start(tmp_path / "state", config=config):
        pass
    error = json.loads(ended.value.output)["error"]
    assert ended.value.status == 2
    assert "pool.yaml" in error["message"]
    assert "line 2" in error["message"]
    assert "default" in error["message"]


def test_port_in_use_exits_with_2_and_remedy(tmp_path: Path) -> None:
    with socket.socket() as thief:
        thief.bind(("127.0.0.1", 0))
        thief.listen()
        port = str(thief.getsockname()[1])
        done = benchpool("up", "--state", str(tmp_path / "state"), "--port", port)
    assert done.returncode == 2
    assert f"Port {port}" in done.stderr
    assert "--port 0" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        *(["--port", "70000"], ["--gpus", "0"], ["--bind", "nowhere"], ["--auth", "none"]),
        *(["--trusted-proxy", "proxy.lan"], ["--hide-cookie", "a b"]),
    ],
)
def test_invalid_options_exit_with_2(tmp_path: Path, words: list[str]) -> None:
    done = benchpool("up", "--state", str(tmp_path / "state"), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert words[0] in done.stderr
