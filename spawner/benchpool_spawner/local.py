"""Notebook servers as processes of one machine, each with its own GPUs.

``LocalGPUSpawner`` runs all servers as the account of the Hub (one user, or users who trust each
other). ``LocalGPUPAMSpawner`` runs each as its user's system account and needs root.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner
from traitlets import default
from traitlets.config import LoggingConfigurable

from benchpool_scheduler.worker import loopback_ports
from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.worker.supervisor import containment
from benchpool_spawner.first_answer import FirstAnswerMixin
from benchpool_spawner.mixin import QuotaMixin
from benchpool_spawner.refusal import StartRefused
from benchpool_spawner.sandboxed import SandboxedMixin

INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TZ", "VIRTUAL_ENV")
"""Variables that a notebook server inherits from the Hub's environment. No others are passed on."""


START = "BENCHPOOL_SERVER_START"
"""Variable that identifies a server whose Hub was killed before it stored the process."""

SWEEP_S = 0.05


class SameProcess(LoggingConfigurable):
    """Mixin that identifies the server's process across restarts of Hub and machine.

    A start has a mark that is stored before the process exists. If the Hub is killed between the
    two, the process is unknown. Then all processes with the mark are ended before the GPUs are
    released.
    """

    pid: int
    port: int
    proc: Any
    user: Any
    orm_spawner: Any
    _process: str | None = None
    _start: str | None = None
    _interrupted = False
    start_tag: str | None = None
    """Mark in the environment of all processes of a start, until they have ended."""

    @default("env_keep")
    def _default_env_keep(self) -> list[str]:
        return list(INHERITED)

    async def start(self) -> Any:
        """Start the server and store the identity of its process."""
        if self._interrupted:
            await self.poll()
        self._start, self._interrupted = uuid.uuid4().hex, False
        self.start_tag = f"{START}={self._start}"
        self.orm_spawner.state = self.get_state()
        self.user.db.commit()
        if self.port == 0:
            self.port = loopback_ports.free_port()
        where = await super().start()  # type: ignore[misc]
        self._process = identity(self.pid)
        return where

    def get_env(self) -> dict[str, str]:
        """Return the server's environment, with the mark of this start."""
        env: dict[str, str] = super().get_env()  # type: ignore[misc]
        return env if self._start is None else {**env, START: self._start}

    async def poll(self) -> int | None:
        """Return None while the server runs, else its exit code (0 if unknown)."""
        if self._interrupted and self.start_tag is not None:
            tag = self.start_tag
            await asyncio.to_thread(containment.sweep_until_clean, tag, None, SWEEP_S)
            self.clear_state()
            return 0
        adopted = self.proc is None and self.pid and self._process is not None
        if adopted and identity(self.pid) != self._process:
            self.clear_state()
            return 0
        status: int | None = await super().poll()  # type: ignore[misc]
        return status

    def get_state(self) -> dict[str, Any]:
        """Return PID and identity of the process, and the mark of its start."""
        state: dict[str, Any] = super().get_state()  # type: ignore[misc]
        if self._process is not None and "pid" in state:
            state["process"] = self._process
        if self._start is not None:
            state["start"] = self._start
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Load PID and identity of the process. A start without them was interrupted."""
        super().load_state(state)  # type: ignore[misc]
        self._process, self._start = state.get("process"), state.get("start")
        self._interrupted = self._start is not None and "pid" not in state
        self.start_tag = None if self._start is None else f"{START}={self._start}"

    def clear_state(self) -> None:
        """Forget the process."""
        super().clear_state()  # type: ignore[misc]
        self._process = self._start = None
        self._interrupted = False


def unless_alone(prepare: Callable[[], object]) -> Callable[[], None]:
    """Return the preparation of a new process, which exits if its Hub has ended meanwhile."""
    hub = os.getpid()

    def prepare_and_look() -> None:
        prepare()
        if os.getppid() != hub:
            os._exit(1)

    return prepare_and_look


class InOwnHome(SimpleLocalProcessSpawner):  # type: ignore[misc]
    """Spawner under the account of the Hub, with a home folder made for each user."""

    async def start(self) -> Any:
        """Make the home folder and start the server.

        Raises:
            StartRefused: The home folder cannot be used.
        """
        _make_home(Path(self.home_dir))
        return await super().start()

    def make_preexec_fn(self, name: str) -> Callable[[], None]:
        """Return the preparation of the new process: change to the user's home folder."""
        home = self.home_dir
        return unless_alone(lambda: os.chdir(home))


PROFILE = """\
# Login shells find benchpool and the notebook's python3.
[ -z "$BENCHPOOL_BIN" ] || PATH="$BENCHPOOL_BIN:$PATH"
[ -z "$BASH" ] || [ ! -f ~/.bashrc ] || . ~/.bashrc
"""
_PROFILES = (".profile", ".bash_profile", ".bash_login")


def _make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not any((home / name).exists() for name in _PROFILES):
            (home / ".profile").write_text(PROFILE)
    except OSError as failed:
        raise StartRefused(
            f"The home folder {home} cannot be used ({failed.strerror}). An administrator must "
            "free space for it.",
            reason="home-folder",
            status_code=503,
        ) from failed


class LocalGPUSpawner(FirstAnswerMixin, SandboxedMixin, QuotaMixin, SameProcess, InOwnHome):
    """Spawner under the account of the Hub, with a home folder for each user."""


class UnderOwnAccount(FirstAnswerMixin, SandboxedMixin, QuotaMixin, SameProcess):
    """Base for servers under their users' system accounts."""

    own_accounts = True


class LocalGPUPAMSpawner(UnderOwnAccount, LocalProcessSpawner):  # type: ignore[misc]
    """Spawner under the users' system accounts."""

    def make_preexec_fn(self, name: str) -> Callable[[], None]:
        """Return the preparation of the new process: switch to the user's account."""
        return unless_alone(super().make_preexec_fn(name))
