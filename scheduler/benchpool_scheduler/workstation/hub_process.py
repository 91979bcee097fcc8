"""The Hub as a process of ``benchpool up``: start, watch and stop."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.worker.supervisor import private_folder
from benchpool_scheduler.workstation import hub_facts, jupyter, processes
from benchpool_scheduler.workstation.state import StateFolder

LOG_LIMIT = 16 * 2**20
TAIL_LINES = 12
TAIL_BYTES = 32 * 2**10

_FAULT = re.compile(r"^\[[EC] |\b(ERROR|CRITICAL)\b|^[A-Za-z.]*(Error|Exception)\b")
END_PATIENCE_S = 20.0

# The environment of an outer Jupyter or benchpool must not reach this Hub.
_NOT_INHERITED = ("JUPYTERHUB_", "JPY_", "CONFIGPROXY_", "BENCHPOOL_", "JUPYTER_")


class HubProcess:
    """One Hub with its child processes: proxy and scheduler.

    Args:
        lock: Descriptor of the folder's lock, which the Hub holds too.
    """

    def __init__(self, folder: StateFolder, lock: int) -> None:
        self._folder = folder
        self._lock = lock
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, after stopping a proxy that an earlier Hub left.

        Temporary folders of ended servers are removed: a Hub that lost its database does not know
        them.
        """
        _end_old_proxy(self._folder.hub / "proxy.pid")
        await asyncio.to_thread(private_folder.sweep, str(self._folder.server_tmp))
        config = hub_facts.hub_config() / "local.py"
        command = hub_facts.tie_to_parent(jupyter.command("jupyterhub", "-f", str(config)))
        log = _open_log(self._folder.hub_log)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                cwd=self._folder.hub,
                env=_environment(self._folder),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # `benchpool up` handles Ctrl-C, and shuts the Hub down in order.
                start_new_session=True,
                pass_fds=(self._lock,),
            )
        finally:
            os.close(log)

    async def ended(self) -> int:
        """Wait until it ends, and return its exit status."""
        if self._process is None:
            raise RuntimeError("the Hub was not started")
        return await self._process.wait()

    @property
    def has_ended(self) -> bool:
        """Return whether its process has ended."""
        return self._process is None or self._process.returncode is not None

    def trim_log(self) -> None:
        """Keep the log of a long-running Hub within its limit: the last two parts."""
        path = self._folder.hub_log
        if path.stat().st_size > LOG_LIMIT:
            shutil.copyfile(path, path.with_suffix(".log.1"))
            os.truncate(path, 0)

    def log_size(self) -> int:
        """Return the size of its log in bytes, 0 when there is none."""
        try:
            return self._folder.hub_log.stat().st_size
        except OSError:
            return 0

    def processor_s(self) -> float:
        """Return the processor time of the Hub and its child processes, in seconds."""
        return 0.0 if self._process is None else processes.processor_s(self._process.pid)

    async def stop(self) -> None:
        """Stop it: the Hub stops scheduler and proxy, and leaves notebook servers running."""
        process = self._process
        if process is None or self.has_ended:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), END_PATIENCE_S)
        except TimeoutError:
            process.kill()
            await process.wait()

    def failure(self, what: str) -> Unavailable:
        """Return the error for a Hub that fails to start, with the end of its log."""
        tail = "\n".join(_tail(self._folder.hub_log))
        return Unavailable(
            f"{what}; the last lines of {self._folder.hub_log}:\n{tail}", code="hub-failed"
        )


def _environment(folder: StateFolder) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_INHERITED)}
    return {**kept, "BENCHPOOL_HUB_FACTS": str(folder.facts), "PYTHONUNBUFFERED": "1"}


def _open_log(path: Path) -> int:
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(path.with_suffix(".log.1"))
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _tail(path: Path) -> list[str]:
    """Return the last lines of the log that report an error, else the last lines."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    return ([line for line in lines if _FAULT.search(line)] or lines)[-TAIL_LINES:]


def _end_old_proxy(pid_file: Path) -> None:
    """Stop the proxy that a killed Hub left, unless its process ID was reused.

    The Hub itself would signal any process with that ID.
    """
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return
    known = identity(pid)
    if known is not None and "configurable-http-proxy" in processes.command_line(pid):
        processes.end(pid, known, patience_s=3.0, kill=True)
    pid_file.unlink(missing_ok=True)
