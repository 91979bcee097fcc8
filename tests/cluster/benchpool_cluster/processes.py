"""The processes of a cluster by name: started, ended, frozen and started again.

What is known of each lies in a file, so that another process than the one that started it can end
it. A process is told by its id and its start time: an id alone may belong to somebody else by now.
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
    """A part did not become ready in time; the text ends with what it wrote last."""


@dataclass(frozen=True, slots=True)
class Processes:
    """All processes of one cluster, with their logs, in one folder.

    ``tied`` ones end with the process that started them, however that ended.
    """

    folder: Path
    tied: bool = False

    def start(self, name: str, command: Sequence[object]) -> None:
        """Start a process under a name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._spawn(name, [str(word) for word in command])

    def restart(self, name: str) -> None:
        """Start an ended process again with the command it had."""
        self.kill(name)
        self._spawn(name, self._known(name)["command"])

    def stop(self, name: str, seconds: float = 30) -> None:
        """Ask a process to end and wait for it; after ``seconds`` it is killed."""
        self._signal(name, signal.SIGCONT)
        self._signal(name, signal.SIGTERM)
        if not in_time(lambda: not self.is_running(name), seconds):
            self.kill(name)

    def kill(self, name: str) -> None:
        """End a process at once, as a crash would."""
        self._signal(name, signal.SIGKILL)
        if not in_time(lambda: not self.is_running(name), 60):
            raise NotReady(f"{name} does not die")

    def kill_all(self) -> None:
        """End all at once, the latest first."""
        for name in self.names():
            self.kill(name)

    def freeze(self, name: str) -> None:
        """Stop a process without ending it: it holds its connections and answers nothing."""
        os.kill(self.pid(name), signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Let a frozen process go on."""
        os.kill(self.pid(name), signal.SIGCONT)

    def is_running(self, name: str) -> bool:
        """Say whether a process lives; one that only waits to be collected does not."""
        return self._living(name) is not None

    def pid(self, name: str) -> int:
        """The id of a running process."""
        pid = self._living(name)
        if pid is None:
            raise NotReady(f"{name} is not running. {self.last_words(name)}")
        return pid

    def names(self) -> list[str]:
        """All processes that were started here, the latest first."""
        files = self.folder.glob("*.process")
        return [f.stem for f in sorted(files, key=lambda f: f.stat().st_mtime_ns, reverse=True)]

    def forget(self, name: str) -> None:
        """Drop what is known of an ended process; its log stays."""
        (self.folder / f"{name}.process").unlink(missing_ok=True)

    def last_words(self, name: str) -> str:
        """The end of a process's log."""
        log = self.folder / f"{name}.log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else "(no log)"

    def wait_for(self, name: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until a part is ready; fail at once when its process has ended."""
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
    """Open files that whoever started us has left to us, for example the lock of ``flock``.

    Our processes must not hold them: some live longer than we do.
    """
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # the folder itself, closed by now
            if number > 2 and os.get_inheritable(number):
                found.append(number)
    return found


def began(pid: int) -> str | None:
    """When a process began, in ticks since the machine did; None for one that has ended."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # collects it when it was our child
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # Of a zombie, too, other threads may live, and hold its ports.
    return None if words[0] in "ZX" and int(words[17]) <= 1 else words[19]


def in_time(holds: Callable[[], bool], seconds: float) -> bool:
    """Say whether something came to hold in time. Tests wait with ``benchpool_support.waiting``."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
