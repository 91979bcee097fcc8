"""The unit under a real systemd: started, killed, hanging and stopped, while jobs keep running.

A private ``systemd --user`` runs in its own namespaces and cgroups and touches nothing of the
machine. The tests are skipped with a reason where systemd is missing, or root to isolate it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.worker.supervisor import cgroups
from benchpool_support.waiting import PATIENCE_S, until

SYSTEMD = next(
    (path for path in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if Path(path).exists()),
    None,
)
TOOLS = ("systemctl", "unshare", "nsenter", "ip", "pgrep")
BENCHPOOL = (sys.executable, "-m", "benchpool_scheduler.cli")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(SYSTEMD is None, reason="there is no systemd"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may give systemd namespaces"),
    pytest.mark.skipif(
        any(shutil.which(tool) is None for tool in TOOLS), reason=f"{' '.join(TOOLS)} are needed"
    ),
]

FIRST = """
ip link set lo up && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system
"$@" > systemd.log 2>&1 &
echo $! > systemd.pid
wait
"""
"""First command in the namespaces; it makes the machine look as if systemd had booted it."""


class Systemd:
    """A user's systemd, and commands in its namespaces."""

    def __init__(self, home: Path, first: int) -> None:
        self.home = home
        self._enter = ("nsenter", "--target", str(first), "--mount", "--pid", "--net", "--")
        self.environ = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environ |= {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}

    def run(self, *words: str, check: bool = True, cwd: Path | None = None) -> str:
        """Run a command and return its output."""
        there = ("sh", "-c", 'cd "$0" && exec "$@"', str(cwd or self.home))
        done = subprocess.run(
            [*self._enter, *there, *words], env=self.environ, check=False,
            capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def shows(self, what: str) -> str:
        """Return a property of the unit."""
        return self.run("systemctl", "--user", "show", "--property", what, "--value", "benchpool")

    def waits_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until the condition holds."""
        until(condition, lambda: f"{what}; {self.log()}")

    def log(self) -> str:
        """Return the end of the log of systemd and its units."""
        return (self.home / "systemd.log").read_text()[-4000:]


def join(folders: list[Path]) -> None:
    for folder in folders:
        (folder / "cgroup.procs").write_text("0")


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    """Yield a running systemd."""
    own = (cgroups.own_folder(tree) for tree in ("", "name=systemd"))
    folders = [Path(folder) / f"systemd-of-tests-{os.getpid()}" for folder in own if folder]
    if not folders:
        pytest.skip("systemd needs cgroups")
    (tmp_path / "run").mkdir(mode=0o700)
    for folder in folders:
        try:
            folder.mkdir()
        except OSError as error:
            pytest.skip(f"no cgroup can be made for systemd ({error.strerror})")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    words = [str(SYSTEMD), "--user", "--log-target=console"]
    first = subprocess.Popen(
        ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child",
         "sh", "-c", FIRST, "sh", *words],
        env=environ | {"XDG_RUNTIME_DIR": str(tmp_path / "run")},
        cwd=tmp_path, preexec_fn=lambda: join(folders),
    )  # fmt: skip
    try:
        inside = Path(f"/proc/{first.pid}/task/{first.pid}/children")
        until((tmp_path / "systemd.pid").exists)
        one = Systemd(tmp_path, int(inside.read_text().split()[0]))
        up = ("systemctl", "--user", "is-system-running")
        one.waits_for(lambda: one.run(*up, check=False) in {"running", "degraded"}, "it runs")
        yield one
    finally:
        first.kill()
        first.wait()
        for folder in folders:
            for below in sorted(folder.rglob("*/"), reverse=True):
                if below.is_dir():
                    with contextlib.suppress(OSError):
                        below.rmdir()
            with contextlib.suppress(OSError):
                folder.rmdir()


def test_installed_unit_survives_kills_and_hangs(
    systemd: Systemd,
) -> None:
    state = systemd.home / "state"
    up = ("up", "--install", "user", "--state", str(state), "--port", "0", "--gpus", "2")
    report = json.loads(systemd.run(*BENCHPOOL, *up, "--json"))
    quick = Path(report["unit"] + ".d")
    quick.mkdir()
    (quick / "quick.conf").write_text("[Service]\nWatchdogSec=10\nRestartSec=1\n")
    for line in report["next"]:
        if line.startswith("systemctl"):
            systemd.run("sh", "-c", line)
    assert systemd.shows("ActiveState") == "active"
    assert systemd.shows("StatusText").startswith("JupyterHub and the pool answer at http")
    found = {one["name"]: one for one in json.loads(doctor(systemd, state))}
    assert found["Service"]["text"].endswith("is enabled and active.")

    worker = send(systemd, state)
    main = systemd.shows("MainPID")
    systemd.run("kill", "-KILL", main)
    back(systemd, main)
    assert running(systemd)

    main = systemd.shows("MainPID")
    systemd.run("kill", "-STOP", main)  # it sends no more watchdog messages
    back(systemd, main)
    assert systemd.shows("NRestarts") == "2"

    systemd.run("systemctl", "--user", "stop", "benchpool")
    assert systemd.shows("ActiveState") == "inactive"
    assert systemd.run("ps", "-o", "comm=", "-p", worker) == "sleep"
    systemd.run("systemctl", "--user", "start", "benchpool")
    assert running(systemd)
    assert systemd.run("ps", "-o", "comm=", "-p", worker) == "sleep"


def doctor(systemd: Systemd, state: Path) -> str:
    return systemd.run(*BENCHPOOL, "doctor", "--state", str(state), "--json", check=False)


def send(systemd: Systemd, state: Path) -> str:
    """Send a job that sleeps; return its process ID in systemd's namespace."""
    systemd.environ["BENCHPOOL_STATE"] = str(state)
    work = systemd.home / "work"
    work.mkdir()
    answer = systemd.run(*BENCHPOOL, "submit", "--json", "--", "sleep", "1357", cwd=work)
    systemd.environ["JOB"] = str(json.loads(answer)["id"])
    systemd.waits_for(lambda: running(systemd), "the job runs")
    return systemd.run("pgrep", "-x", "-f", "sleep 1357")


def running(systemd: Systemd) -> bool:
    """Return whether the sent job runs."""
    answer = json.loads(systemd.run(*BENCHPOOL, "jobs", "--json"))
    jobs = answer["jobs"] if isinstance(answer, dict) else answer
    return [job["state"] for job in jobs if job["id"] == systemd.environ["JOB"]] == ["running"]


def back(systemd: Systemd, before: str) -> None:
    """Wait until systemd has restarted the service and the service reports ready."""
    systemd.waits_for(
        lambda: (
            systemd.shows("MainPID") not in {before, "0"}
            and systemd.shows("ActiveState") == "active"
        ),
        "it is started again",
    )
