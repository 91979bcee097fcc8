"""Shells in pods, as far as the scheduler has them: what is typed waits for the worker's agent,
what is printed for the reader. The terminal is in the pod, and so is the shell.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from benchpool_scheduler.contract.shells import OPENS_S
from benchpool_scheduler.errors import InvalidInput, NotFound

KEPT_BYTES = 64 * 1024
"""What is typed and not fetched; who types more waits."""
CLOSES_S = 5.0
"""An agent may take so long to end a shell and tell its exit code, seconds."""
MOST_WAIT_S = 25.0


@dataclass(frozen=True, slots=True)
class PendingShell:
    """A shell is asked for, and the terminal that it is shown in."""

    shell: str
    rows: int
    columns: int
    term: str


@dataclass(frozen=True, slots=True)
class Typed:
    """What an agent types into a shell; ``next`` is the offset of what comes after it."""

    data: bytes
    next: int
    rows: int
    columns: int
    hang_up: bool


class AgentShell:
    """A shell in a worker's pod; see ``ShellChannel``.

    Args:
        asked: What its agent is told.

    Attributes:
        heard: The agent has been told of it. ``over``: it has ended, or could not be opened.
    """

    def __init__(self, asked: PendingShell) -> None:
        self.asked = asked
        self.heard = self.over = False
        self._opened = self._hung_up = False
        self._size = (asked.rows, asked.columns)
        self._typed = bytearray()
        self._fetched = 0
        self._printed = b""
        self._received = 0
        self._exit_code: int | None = None
        self._why = ""
        self._changed = asyncio.Event()

    async def opening(self) -> AgentShell:
        """Wait until its agent has opened it. Errors: OSError."""
        try:
            await self._until(lambda: self._opened or self.over, OPENS_S)
        except TimeoutError:
            self.end()
            raise TimeoutError(110, f"its agent did not answer within {OPENS_S:g} s") from None
        except asyncio.CancelledError:
            self.end()
            raise
        if not self._opened:
            raise OSError(5, self._why or "its worker has ended")
        return self

    # ------------------------------------------------------------------ for its reader

    async def read(self) -> bytes:
        """Return what it printed, waiting for it; nothing when it has ended."""
        await self._until(lambda: bool(self._printed) or self.over)
        data, self._printed = self._printed, b""
        self._tell()
        return data

    async def write(self, data: bytes) -> None:
        """Type into it. Errors: OSError, it has ended."""
        await self._until(lambda: len(self._typed) < KEPT_BYTES or self.over)
        if self.over:
            raise BrokenPipeError(32, "the shell has ended")
        self._typed += data
        self._tell()

    def resize(self, rows: int, columns: int) -> None:
        """Say how large the terminal is now."""
        self._size = (rows, columns)
        self._tell()

    async def close(self) -> int | None:
        """End it and return its exit code; None as well where its agent does not answer in time."""
        self._hung_up = True
        self._tell()
        with contextlib.suppress(TimeoutError):
            await self._until(lambda: self.over, CLOSES_S)
        self.end()
        return self._exit_code

    # ------------------------------------------------------------------ for its agent

    async def typed(
        self, offset: int, size: tuple[int, int], wait_s: float, *, full: bool
    ) -> Typed:
        """Return what was typed from an offset on, or another size, waiting for it.

        Args:
            size: Of the terminal, as the agent knows it. ``full``: it takes nothing typed now.
        """
        if not self._opened:
            self._opened = True
            self._tell()
        fetched = min(max(offset - self._fetched, 0), len(self._typed))
        if fetched:
            del self._typed[:fetched]
            self._fetched += fetched
            self._tell()

        def news() -> bool:
            return (
                self._hung_up or self.over or self._size != size or bool(self._typed and not full)
            )

        with contextlib.suppress(TimeoutError):
            await self._until(news, min(wait_s, MOST_WAIT_S))
        data = b"" if full else bytes(self._typed)
        return Typed(data, self._fetched + len(data), *self._size, self._hung_up or self.over)

    async def printed(self, offset: int, data: bytes) -> int:
        """Take what was printed from an offset on, waiting for room; return where it goes on.

        Errors: NotFound, nobody reads it any more; InvalidInput, something before it did not come.
        """
        if offset > self._received:
            raise InvalidInput(f"Only {self._received} bytes came before offset {offset}.")
        with contextlib.suppress(TimeoutError):
            await self._until(lambda: not self._printed or self._hung_up or self.over, MOST_WAIT_S)
        if self._hung_up or self.over:
            raise gone()
        if not self._printed:
            self._printed = data[self._received - offset :]
            self._received += len(self._printed)
            self._tell()
        return self._received

    def end(self, exit_code: int | None = None, why: str = "") -> None:
        """Take its end; only the first one counts."""
        if not self.over:
            self.over, self._exit_code, self._why = True, exit_code, why
            self._tell()

    async def _until(self, holds: Callable[[], bool], most_s: float | None = None) -> None:
        """Wait until something holds of it. Errors: TimeoutError."""
        async with asyncio.timeout(most_s):
            while not holds():
                await self._changed.wait()

    def _tell(self) -> None:
        """Wake everybody who waits; who waits from now on waits for the next change."""
        self._changed.set()
        self._changed = asyncio.Event()


class AgentShells:
    """The shells of one worker that have not ended."""

    def __init__(self) -> None:
        self._open: dict[str, AgentShell] = {}

    def ask(self, rows: int, columns: int, term: str) -> AgentShell:
        """Return a shell that the agent is asked for; it is kept until it has ended."""
        for id_ in [id_ for id_, shell in self._open.items() if shell.over]:
            del self._open[id_]
        id_ = secrets.token_hex(16)
        shell = self._open[id_] = AgentShell(PendingShell(id_, rows, columns, term))
        return shell

    def pending(self, known: str) -> PendingShell | None:
        """Return one that the agent has not been told of; ``known`` is the last that it has."""
        if known in self._open:
            self._open[known].heard = True
        waiting = (it for it in self._open.values() if not (it.heard or it.over))
        return next((it.asked for it in waiting), None)

    def one(self, id_: str) -> AgentShell:
        """Return one of them. Errors: NotFound."""
        if id_ not in self._open:
            raise gone()
        return self._open[id_]

    def end(self) -> None:
        """End all, since the worker has ended."""
        for shell in self._open.values():
            shell.end()


def gone() -> NotFound:
    """Return what an agent is told whose shell nobody reads any more."""
    return NotFound("There is no such shell: it has ended.")
