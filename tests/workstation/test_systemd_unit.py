"""The unit written by ``benchpool up --install``: its text, and its commands as run by systemd.

The tests need no systemd: a socket of their own receives the ready and watchdog messages.
``systemd-analyze`` also checks the unit where it is installed.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.workstation import findings, units
from benchpool_scheduler.workstation.finding import Finding
from benchpool_scheduler.workstation.options import UpOptions
from benchpool_scheduler.workstation.state import StateFolder
from benchpool_support.waiting import until
from benchpool_support.workstation import COMMAND

BENCHPOOL = list(COMMAND)


def test_unit_command_has_every_proxy_and_cookie(tmp_path: Path) -> None:
    proxies, cookies = ("10.0.0.7", "10.1.0.0/16"), ("_oauth2_proxy",)
    words = units.command(UpOptions(tmp_path, trusted_proxies=proxies, hidden_cookies=cookies))
    command = " ".join(words)
    assert "--trusted-proxy 10.0.0.7 --trusted-proxy 10.1.0.0/16" in command
    assert "--hide-cookie _oauth2_proxy" in command


def installed(home: Path, *options: str) -> dict[str, str]:
    """Write a user unit below a home, and return its service section."""
    environ = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": "", "XDG_RUNTIME_DIR": str(home)}
    line = [*BENCHPOOL, "up", "--install", "user", "--state", str(home / "state"), *options]
    done = subprocess.run(
        [*line, "--json"], env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    path = Path(json.loads(done.stdout)["unit"])
    assert path == home / ".config/systemd/user/benchpool.service"
    if shutil.which("systemd-analyze"):
        verified = subprocess.run(
            ["systemd-analyze", "--user", "verify", path],
            env=environ, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        # It reads the machine's other units as well and reports on those too.
        ours = [line for line in verified.stderr.splitlines() if "benchpool.service" in line]
        assert (verified.returncode, ours) == (0, [])
    read = configparser.ConfigParser(interpolation=None, strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(path)
    return dict(read["Service"])


def test_unit_sets_restart_kill_mode_and_watchdog(
    tmp_path: Path,
) -> None:
    unit = installed(tmp_path, "--port", "0", "--gpus", "2")
    assert unit["Restart"] == "always"
    assert unit["KillMode"] == "process"
    assert (unit["Type"], unit["WatchdogSec"]) == ("notify", "60")
    words = shlex.split(unit["ExecStart"])
    assert words[1:4] == ["-m", "benchpool_scheduler.cli", "up"]
    assert words[words.index("--state") + 1] == str(tmp_path / "state")
    assert words[words.index("--gpus") + 1] == "2"


def test_special_characters_in_path_are_escaped(tmp_path: Path) -> None:
    home = tmp_path / "my 100% pool"
    home.mkdir()
    assert f'"{tmp_path}/my 100%% pool/state"' in installed(home)["ExecStart"]


def test_unit_delegates_subgroup_on_recent_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = UpOptions(tmp_path / "state")
    tool = tmp_path / "systemctl"
    monkeypatch.setenv("PATH", str(tmp_path))
    for number, there in ((252, False), (257, True)):
        tool.write_text(f"#!/bin/sh\necho 'systemd {number} ({number}.1)'\n")
        tool.chmod(0o755)
        text = units.unit("user", options, {"HOME": str(tmp_path)}).text
        assert ("DelegateSubgroup=benchpool-service" in text) is there


def test_invalid_options_write_no_unit(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        installed(tmp_path, "--port", "70000")
    assert failed.value.returncode == 2
    assert not (tmp_path / ".config").exists()


def test_doctor_checks_installed_unit(tmp_path: Path) -> None:
    installed(tmp_path)
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    def service() -> Finding:
        found = findings.look(StateFolder(tmp_path / "state"), environ)
        return next(one for one in found if one.name == "Service")

    path = tmp_path / ".config/systemd/user" / units.NAME
    assert str(path) in service().text
    path.write_text(re.sub('(?m)^ExecStart=("?)/', r"ExecStart=\1/gone/", path.read_text()))
    assert service().level == "broken"
    assert service().remedy.endswith("benchpool up --install user")
    path.unlink()
    assert service().level == "ok"


# --------------------------------------------------------------------------- the unit's commands


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """Yield the socket on which systemd would listen."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as way:
        way.bind(str(tmp_path / "notify"))
        way.settimeout(120)
        yield way


def wait_message(manager: socket.socket, fact: str) -> str:
    """Wait until the process sends this fact; return the whole message."""
    while True:
        message = manager.recv(4096).decode()
        if fact in message.split("\n"):
            return message


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_unit_command_notifies_ready_and_watchdog(tmp_path: Path, manager: socket.socket) -> None:
    unit = installed(tmp_path, "--port", "0", "--gpus", "2")
    environ = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1000000"}
    process = subprocess.Popen(
        shlex.split(unit["ExecStart"]), env=environ, stdout=subprocess.DEVNULL
    )
    try:
        assert "STATUS=JupyterHub and the pool answer at http" in wait_message(manager, "READY=1")
        work = tmp_path / "work"
        work.mkdir()
        sent = subprocess.run(
            [*BENCHPOOL, "submit", "--json", "--", "sh", "-c", 'echo "[$NOTIFY_SOCKET]"; sleep 60'],
            env={**os.environ, "BENCHPOOL_STATE": str(tmp_path / "state")},
            cwd=work,
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        pid = worker_of(json.loads(sent.stdout)["id"])
        for _ in range(3):
            wait_message(manager, "WATCHDOG=1")
        subprocess.run(["kill", "-HUP", str(process.pid)], check=True)  # the command of ExecReload
        wait_message(manager, "WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        wait_message(manager, "STOPPING=1")
        assert process.wait(90) == 0
        assert identity(pid) is not None
        os.killpg(os.getpgid(pid), signal.SIGKILL)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def worker_of(job: str) -> int:
    """Return the process ID of a running job."""

    def found() -> list[int]:
        processes = (it for it in Path("/proc").iterdir() if it.name.isdigit())
        return [int(it.name) for it in processes if _runs(it, job)]

    return until(found, f"job {job} runs")[0]


def _runs(process: Path, job: str) -> bool:
    try:
        line = (process / "cmdline").read_bytes()
        return line.startswith(b"sleep") and job.encode() in (process / "environ").read_bytes()
    except OSError:
        return False
