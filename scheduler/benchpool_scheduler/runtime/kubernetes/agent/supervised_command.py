"""The command's supervisor as a child process of the agent (see ``worker.supervisor``)."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchpool_scheduler.worker import records
from benchpool_scheduler.worker.supervisor import containment
from benchpool_scheduler.worker.supervisor_process import Program, spawn

from . import environment, paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .children import Children
    from .config import AgentConfig


def supervisor_config(config: AgentConfig, image: Mapping[str, str]) -> dict[str, object]:
    """Return the configuration of the supervisor."""
    return {
        "argv": config.argv,
        "env": environment.environment(config, image),
        "cwd": config.cwd,
        "files": config.files,
        "objects": paths.OBJECTS,
        "folders": [config.checkpoint, paths.OUTPUT],
        "output": paths.OUTPUT,
        "output_dir": config.home or paths.RESULTS,
        "account": None,
        "grace_s": config.grace_s,
        "time_limit_s": config.time_limit_s,
        "log_bytes": config.log_bytes,
        "tag": tag(),
        "name": f"benchpool-{config.job}-{config.attempt}-{config.index}",
    }


def tag() -> str:
    """Return the environment variable that marks every process of the command."""
    return f"BENCHPOOL_NOTICE_FILE={environment.NOTICE}"


class SupervisedCommand:
    """A running supervisor."""

    def __init__(self, config: Mapping[str, object], zipped: str, children: Children) -> None:
        self._children = children
        folder = Path(paths.WORKER)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(folder / records.LOCK, flags, 0o600)

        def start() -> int:
            pid, ready = spawn(Program.zipped(zipped), folder, config, lock=lock, errors=2)
            os.close(ready)
            return pid

        try:
            self._pid = children.begin(start)
        finally:
            os.close(lock)

    @property
    def pid(self) -> int:
        """Pid of the supervisor, the ancestor of the command."""
        return self._pid

    @property
    def over(self) -> bool:
        """Whether the supervisor has ended."""
        return self._children.code(self._pid) is not None

    def stop(self, kind: str, grace_s: float, for_: str, text: str) -> None:
        """Let the supervisor stop the command, as the scheduler requested."""
        request: dict[str, object] = {"kind": kind, "grace_s": grace_s, "for": for_, "text": text}
        records.write(paths.WORKER, records.STOP, request, durable=False)
        # A signal would kill a supervisor that is not ready yet. It looks for the request by itself
        # then.
        if os.path.exists(os.path.join(paths.WORKER, records.PROCESS)):
            self._send(signal.SIGUSR1)

    def machine_ends(self) -> None:
        """Report that the pod is being removed, without a request of the scheduler."""
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline and not self.over:
            if os.path.exists(os.path.join(paths.WORKER, records.PROCESS)):
                self._send(signal.SIGTERM)
                return
            time.sleep(0.05)

    def end(self) -> dict[str, object]:
        """Return the record of the end; kill whatever a killed supervisor left."""
        found = records.read(paths.WORKER, records.EXIT)
        if found is not None:
            return found
        containment.sweep_until_clean(tag(), None, 0.02)
        return {
            "exit_code": None,
            "by": "lost",
            "text": "its supervisor was killed, perhaps because memory was short",
            "started": None,
            "ended": time.time(),
        }

    def _send(self, number: signal.Signals) -> None:
        if not self.over:
            os.kill(self._pid, number)
