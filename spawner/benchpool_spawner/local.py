"""Notebook servers as processes of one machine, each with GPUs of its own.

``LocalGPUSpawner`` runs all servers as the account of the Hub (one person, or people who trust
each other); ``LocalGPUPAMSpawner`` runs each as its user's system account and needs root.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner
from traitlets import default
from traitlets.config import LoggingConfigurable

from benchpool_scheduler.worker.process_identity import identity
from benchpool_spawner.mixin import QuotaMixin
from benchpool_spawner.refusal import StartRefused

INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TZ", "VIRTUAL_ENV")
"""What a notebook server has from the Hub's environment; nothing else reaches it."""


class SameProcess(LoggingConfigurable):
    """Know the server's process again by more than its pid, over restarts of Hub and machine."""

    pid: int
    proc: Any
    _process: str | None = None

    @default("env_keep")
    def _default_env_keep(self) -> list[str]:
        return list(INHERITED)

    async def start(self) -> Any:
        """Start the server and note which process it is."""
        where = await super().start()  # type: ignore[misc]
        self._process = identity(self.pid)
        return where

    async def poll(self) -> int | None:
        """Return None while the server runs, else its exit code (0 where it is not known)."""
        adopted = self.proc is None and self.pid and self._process is not None
        if adopted and identity(self.pid) != self._process:
            self.clear_state()
            return 0
        status: int | None = await super().poll()  # type: ignore[misc]
        return status

    def get_state(self) -> dict[str, Any]:
        """Return pid and identity of the process."""
        state: dict[str, Any] = super().get_state()  # type: ignore[misc]
        if self._process is not None and "pid" in state:
            state["process"] = self._process
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up pid and identity of the process."""
        super().load_state(state)  # type: ignore[misc]
        self._process = state.get("process")

    def clear_state(self) -> None:
        """Forget the process."""
        super().clear_state()  # type: ignore[misc]
        self._process = None


class LocalGPUSpawner(QuotaMixin, SameProcess, SimpleLocalProcessSpawner):  # type: ignore[misc]
    """Servers under the account of the Hub, with a home folder for each user."""

    async def start(self) -> Any:
        """Make the home folder and start the server.

        Raises:
            StartRefused: The home folder cannot be used.
        """
        _make_home(Path(self.home_dir))
        return await super().start()

    def make_preexec_fn(self, name: str) -> Callable[[], None]:
        """Return what runs in the new process: go to the user's own home folder."""
        home = self.home_dir
        return lambda: os.chdir(home)


def _make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as failed:
        raise StartRefused(
            f"The home folder {home} cannot be used ({failed.strerror}): an administrator "
            "has to make room for it.",
            reason="home-folder",
            status_code=503,
        ) from failed


class LocalGPUPAMSpawner(QuotaMixin, SameProcess, LocalProcessSpawner):  # type: ignore[misc]
    """Servers under their users' system accounts."""
