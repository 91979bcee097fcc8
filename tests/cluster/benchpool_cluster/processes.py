"""The processes of a cluster by name: start, stop, freeze and restart.

The facts of each process are in a file, so that a process other than its parent can end it. A
process is identified by its ID and start time, because IDs are reused.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


class NotReady(Exception):
    """Error: a part did not become ready in time; the text ends with its last output."""


@dataclass(frozen=True, slots=True)
class Processes:
    """All processes of one cluster, with their logs, in one folder.

    A ``tied`` process ends with its parent, however the parent ended.
    """

    folder: Path
    tied: bool = False

    def start(self, name: str, command: Sequence[object]) -> None:
        """Start a process under a name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._spawn(name, [str(word) for word in command])

    def restart(self, name: str) -> None:
        """Restart an ended process with the same command."""
        self.kill(name)
        self._spawn(name, self._known(name)["command"])

    def stop(self, name: str, seconds: float = 30) -> None:
        """Request a process to end and wait for it; after ``seconds`` it is killed."""
        self._signal(name, signal.SIGCONT)
        self._signal(name, signal.SIGTERM)
        if not in_time(lambda: not self.is_running(name), seconds):
            self.kill(name)

    def kill(self, name: str) -> None:
        """Kill a process, as a crash would."""
        self._signal(name, signal.SIGKILL)
        if not in_time(lambda: not self.is_running(name), 60):
            raise NotReady(f"{name} does not die")

    def kill_all(self) -> None:
        """Kill all processes, the latest first."""
        for name in self.names():
            self.kill(name)

    def freeze(self, name: str) -> None:
        """Stop a process without ending it: it keeps its connections and answers nothing."""
        os.kill(self.pid(name), signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Resume a frozen process."""
        os.kill(self.pid(name), signal.SIGCONT)

    def is_running(self, name: str) -> bool:
        """Return whether a process is alive; a zombie is not."""
        return self._living(name) is not None

    def pid(self, name: str) -> int:
        """Return the ID of a running process."""
        pid = self._living(name)
        if pid is None:
            raise NotReady(f"{name} is not running. {self.last_words(name)}")
        return pid

    def names(self) -> list[str]:
        """Return the names of all processes started here, the latest first."""
        files = self.folder.glob("*.process")
        return [f.stem for f in sorted(files, key=lambda f: f.stat().st_mtime_ns, reverse=True)]

    def forget(self, name: str) -> None:
        """Delete the facts of an ended process; its log stays."""
        (self.folder / f"{name}.process").unlink(missing_ok=True)

    def last_words(self, name: str) -> str:
        """Return the end of a process's log."""
        log = self.folder / f"{name}.log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else "(no log)"

    def wait_for(self, name: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until a part is ready; fail immediately if its process has ended."""
        if not in_time(lambda: ready() or not self.is_running(name), seconds) or not ready():
            raise NotReady(f"{name} is not ready: {self.last_words(name)}")

    def _spawn(self, name: str, command: list[str]) -> None:
        tie = ["setpriv", "--pdeathsig", "KILL"] if self.tied else []
        log = str(self.folder / f"{name}.log")
        pid = os.posix_spawnp(
            (tie + command)[0],
            tie + command,
            os.environ,
            setsid=True,
            file_actions=[
                *((os.POSIX_SPAWN_CLOSE, number) for number in _inherited()),
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )
        known = {"pid": pid, "began": began(pid), "command": command}
        (self.folder / f"{name}.process").write_text(json.dumps(known))

    def _known(self, name: str) -> dict[str, list[str]]:
        known: dict[str, list[str]] = json.loads((self.folder / f"{name}.process").read_text())
        return known

    def _living(self, name: str) -> int | None:
        file = self.folder / f"{name}.process"
        if not file.exists():
            return None
        known = json.loads(file.read_text())
        pid: int = known["pid"]
        return pid if began(pid) == known["began"] else None

    def _signal(self, name: str, number: signal.Signals) -> None:
        pid = self._living(name)
        if pid is not None:
            os.kill(pid, number)


def _inherited() -> list[int]:
    """Return the open files inherited from the parent, for example the lock of ``flock``.

    Our processes must not hold them, because some outlive this process.
    """
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # the folder itself, already closed
            if number > 2 and os.get_inheritable(number):
                found.append(number)
    return found


def began(pid: int) -> str | None:
    """Return the start time of a process, in ticks since the machine's start.

    Return None for an ended process.
    """
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # collects it if it was our child
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Other threads of a zombie may live and hold its ports.
    return None if words[0] in "ZX" and int(words[17]) <= 1 else words[19]


def in_time(holds: Callable[[], bool], seconds: float) -> bool:
    """Return whether a condition became true in time. Tests use ``benchpool_support.waiting``."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
