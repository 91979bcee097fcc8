"""Processes that start quickly: forks of an interpreter that has already imported the modules.

They can be killed like any other process. ``python -P forked.py MODULES`` is the interpreter. It
reads what to start from its input, one line of JSON each, and answers with process IDs.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


class Fork:
    """Process with the used part of ``subprocess.Popen``'s interface; its exit code is unknown."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended = False

    def poll(self) -> int | None:
        """Return 0 if it has ended, else None."""
        if not self._ended:
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                self._ended = True
        return 0 if self._ended else None

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it exists."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float = 30.0) -> int:
        """Wait until it has ended.

        Raises:
            TimeoutError: It has not ended after ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} has not ended in {timeout:g} s")
            time.sleep(0.01)
        return 0


class Forks:
    """The interpreter that is forked; closing it leaves the forks running.

    Args:
        environ: Environment variables that modules read at import.
    """

    def __init__(self, *modules: str, environ: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._interpreter = subprocess.Popen(
            [sys.executable, "-P", __file__, *modules],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(
        self,
        module: str,
        *words: str,
        environ: Mapping[str, str],
        log: Path,
        folder: Path | None = None,
    ) -> Fork:
        """Run a module like ``python -m``, in a new session; append its output to the log."""
        about = {"module": module, "words": words, "environ": dict(environ), "log": str(log)}
        asked = about | {"folder": str(folder or Path.cwd())}
        with self._lock:
            given, taken = self._interpreter.stdin, self._interpreter.stdout
            assert given is not None
            assert taken is not None
            given.write(json.dumps(asked) + "\n")
            given.flush()
            return Fork(int(taken.readline()))

    def close(self) -> None:
        """Stop the interpreter."""
        self._interpreter.communicate()


def main(modules: Sequence[str]) -> None:
    """Import modules, then fork for each line of the input."""
    for module in modules:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended children are reaped by the kernel
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            _become(json.loads(line))
        print(pid, flush=True)


def _become(asked: dict[str, Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(asked["folder"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.path[:0] = [it for it in asked["environ"].get("PYTHONPATH", "").split(":") if it]
    sys.argv = [asked["module"], *asked["words"]]
    try:
        runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
