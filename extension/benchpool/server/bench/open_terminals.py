"""Terminals of this server, as known to Jupyter's terminal manager."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from benchpool.server.bench import terminal_programs
from benchpool.server.bench.terminal_programs import TerminalScan

KNOWN_S = 5.0
"""Cache time of a scan of terminals, in seconds. Decisions use a fresh scan."""


@dataclass(slots=True)
class OpenTerminals:
    """Scanner of the programs in terminals. A server that never opened a terminal is not scanned.

    Attributes:
        settings: Settings of the web application; the terminal manager is added there later.
        server: Mark that distinguishes this server's terminals from those of other servers.
    """

    settings: dict[str, Any]
    server: str
    clock: Callable[[], float] = time.monotonic
    _any: bool = False
    _known: TerminalScan | None = None
    _known_at: float = float("-inf")

    @classmethod
    def of(cls, settings: dict[str, Any], environ: MutableMapping[str, str]) -> OpenTerminals:
        """Return the terminals of a server, and set their mark in this environment."""
        server = environ[terminal_programs.OF_A_SERVER] = secrets.token_hex(8)
        return cls(settings, server)

    def shells(self) -> dict[str, int]:
        """Return the process ID of each open terminal by the terminal's name."""
        open_now = {} if self.manager is None else self.manager.terminals
        return {name: one.ptyproc.pid for name, one in open_now.items()}

    @property
    def manager(self) -> Any:
        """Jupyter's terminal manager, or None."""
        return self.settings.get("terminal_manager")

    async def lately(self) -> TerminalScan | None:
        """Return the result of ``scan``, cached for ``KNOWN_S`` seconds."""
        if self.clock() - self._known_at >= KNOWN_S:
            await self.scan()
        return self._known

    async def scan(self) -> TerminalScan | None:
        """Return the programs in all terminals, also closed ones; None if they are hidden."""
        self._known = await self._scanned()
        self._known_at = self.clock()
        return self._known

    async def _scanned(self) -> TerminalScan | None:
        shells = self.shells()
        self._any = self._any or bool(shells)
        if not self._any:
            return TerminalScan()
        pids = tuple(shells.values())
        return await asyncio.to_thread(terminal_programs.scan, pids, self.server)
