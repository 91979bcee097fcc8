"""``benchpool up`` whose processes may be killed; a keeper starts it again."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from benchpool_scheduler.worker import records
from benchpool_support.findings import KilledSupervisor
from benchpool_support.loopback import free_port
from benchpool_support.waiting import MOST_POLL_S, PATIENCE_S, processor_seconds, until
from benchpool_support.workstation import COMMAND, RunningWorkstation, choose_ports

AWAY_S = (0.0, 1.0)
"""Range of the delay until ``benchpool up`` starts again, in seconds."""


@dataclass
class Machine:
    """``benchpool up``, started again whenever it has ended.

    Attributes:
        killed: Facts about the killed supervisor of a worker, by the worker's folder.
    """

    folder: Path
    configuration: str
    chance: random.Random
    port: int = field(default_factory=free_port)
    starts: int = 0
    up: RunningWorkstation | None = None
    killed: dict[Path, KilledSupervisor] = field(default_factory=dict)
    _process: subprocess.Popen[str] | None = None
    _enough: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / "state"

    def start(self) -> RunningWorkstation:
        """Start it, and restart it whenever it ends."""
        (self.folder / "benchpool.yaml").write_text(self.configuration)
        choose_ports(self.state)
        self._begin()
        self._thread = threading.Thread(target=self._tend, daemon=True)
        self._thread.start()
        assert self.up is not None
        return self.up

    def _begin(self) -> None:
        options = ("--state", str(self.state), "--config", str(self.folder / "benchpool.yaml"))
        fixed = ("--json", "--port", str(self.port), "--gpus", "9", "--auth", "shared-password")
        with (self.folder / "up.log").open("a") as errors:
            self._process = subprocess.Popen(
                [*COMMAND, "up", *fixed, *options],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.starts += 1
        # If it was killed before it was ready, its output ends, and standard error is empty.
        with suppress(AssertionError):
            self.up = RunningWorkstation(self._process, self.state)

    def _tend(self) -> None:
        while not self._enough.is_set():
            assert self._process is not None
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(MOST_POLL_S)
                self._enough.wait(self.chance.uniform(*AWAY_S))
                if not self._enough.is_set():
                    self._begin()

    def kill(self, kind: str) -> bool:
        """Kill one process of a kind and return whether there was one."""
        found = self.of_kind(kind)
        if not found:
            return False
        one = self.chance.choice(found)
        folder = Path(words_of(one).rpartition(" ")[2])
        with suppress(psutil.NoSuchProcess):
            if kind == "supervisor":
                self.killed[folder] = kill_supervisor(one, folder)
            else:
                one.kill()
            return True
        return False

    def killed_of(self, job: str, attempt: int) -> dict[int, KilledSupervisor]:
        """Return the killed supervisors of one attempt by worker."""
        return {
            int(folder.name.removeprefix("worker-")): one
            for folder, one in self.killed.items()
            if folder.parts[-4:-1] == (job, "attempts", str(attempt))
        }

    def of_kind(self, kind: str) -> list[psutil.Process]:
        """Return the living processes of a kind."""
        return [
            one
            for one in self.processes()
            if _kind(words := words_of(one)) == kind and words != _words_above(one)
        ]

    def processes(self) -> list[psutil.Process]:
        """Return the processes that name the state folder, except the workers' own commands."""
        return [one for one in psutil.process_iter() if _belongs(one, str(self.folder))]

    def settle(self) -> None:
        """Wait until the pool is served again."""
        assert self.up is not None
        api = f"http://127.0.0.1:{self.port}/services/benchpool/api/v1/jobs"

        def served() -> bool:
            with suppress(httpx.HTTPError):
                return httpx.get(api, timeout=30, trust_env=False).status_code == 401
            return False

        try:
            until(served, "the pool answers", progress=self.progress)
        except AssertionError as failed:
            left = "\n".join(f"{one.pid} {words_of(one)}" for one in self.processes())
            ended = None if self._process is None else self._process.poll()
            raise AssertionError(f"{failed}; up has ended: {ended}; living:\n{left}") from failed

    def progress(self) -> object:
        """Return a value that changes while work is done: starts, processes, processor time."""
        return self.starts, processor_seconds(self.processes())

    def end(self) -> None:
        """Stop it permanently, as Ctrl-C does."""
        self._enough.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(60)


def words_of(process: psutil.Process) -> str:
    """Return the command line of a process, or an empty string if it has ended."""
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _words_above(process: psutil.Process) -> str:
    """Return the parent's command line, which a fork has until it executes its own program."""
    with suppress(psutil.Error):
        parent = process.parent()
        return "" if parent is None else words_of(parent)
    return ""


def _belongs(process: psutil.Process, folder: str) -> bool:
    with suppress(psutil.Error):
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        words = " ".join(process.cmdline())
        return folder in words or any(folder in it for it in process.environ().values())
    return False


def _kind(words: str) -> str:
    """Return the kind of a process by its command line."""
    named = {
        "worker.supervisor": "supervisor",
        "parent_death.py --restart": "keeper",
        "benchpool_scheduler.app": "scheduler",
        "configurable-http-proxy": "proxy",
        "singleuser": "server",
        " jupyterhub -f": "hub",
        "import main; main() up": "up",
    }
    return next((kind for part, kind in named.items() if part in words), "")


def kill_supervisor(one: psutil.Process, folder: Path) -> KilledSupervisor:
    """Kill a supervisor in its present state, and return when its worker has ended.

    The supervisor is suspended first, so that its records do not change any more.
    """
    below = one.children(recursive=True)
    one.suspend()
    until(lambda: _stands(one), "the supervisor stands still")
    recorded = records.read(str(folder), records.EXIT) is not None
    below += [it for it in one.children(recursive=True) if it not in below]
    one.kill()
    until(lambda: _is_gone(one), "the supervisor is gone")
    # The kernel kills the children, or they have ended. A worker that continues is detected by its
    # own statements.
    dying = [it for it in below if _dies(it)]
    until(lambda: all(map(_is_gone, dying)), "what it started is gone")
    return KilledSupervisor(recorded, time.time())


def _stands(one: psutil.Process) -> bool:
    return one.status() == psutil.STATUS_STOPPED or _is_gone(one)


def _is_gone(one: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return not one.is_running() or one.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return True


def _dies(one: psutil.Process) -> bool:
    """Return whether the kernel ends a process: SIGKILL is pending, or the process has ended."""
    with suppress(OSError):
        words = Path(f"/proc/{one.pid}/status").read_text().split()
        pending = [int(words[words.index(it) + 1], 16) for it in ("SigPnd:", "ShdPnd:")]
        return any(signals & 1 << signal.SIGKILL - 1 for signals in pending)
    return True
