"""The terminals of this server, as Jupyter's terminal manager keeps them."""

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
"""What runs in terminals is looked for at most so often, unless something hangs on it."""


@dataclass(slots=True)
class OpenTerminals:
    """Asks for what runs in terminals; a server that never opened one is not searched.

    Attributes:
        settings: Those of the web application: the manager comes there after us.
        server: What tells this server's terminals from those of others.
    """

    settings: dict[str, Any]
    server: str
    clock: Callable[[], float] = time.monotonic
    _any: bool = False
    _known: TerminalScan | None = None
    _known_at: float = float("-inf")

    @classmethod
    def of(cls, settings: dict[str, Any], environ: MutableMapping[str, str]) -> OpenTerminals:
        """Return the terminals of a server, which inherit its mark from this environment."""
        server = environ[terminal_programs.OF_A_SERVER] = secrets.token_hex(8)
        return cls(settings, server)

    def shells(self) -> dict[str, int]:
        """Return the process of each open terminal by the terminal's name."""
        open_now = {} if self.manager is None else self.manager.terminals
        return {name: one.ptyproc.pid for name, one in open_now.items()}

    @property
    def manager(self) -> Any:
        """Jupyter's terminal manager, None where there is none."""
        return self.settings.get("terminal_manager")

    async def lately(self) -> TerminalScan | None:
        """Return what ``scan`` finds, or found a moment ago."""
        if self.clock() - self._known_at >= KNOWN_S:
            await self.scan()
        return self._known

    async def scan(self) -> TerminalScan | None:
        """Return what runs in all terminals, closed ones too; None where that is not told."""
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
