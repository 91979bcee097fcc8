"""The scheduler's side of shells in pods.

Input waits for the worker's agent, output for the reader. The terminal and the shell are in the
pod.
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
"""Most bytes of input that the agent has not fetched; further input waits."""
CLOSES_S = 5.0
"""Timeout for an agent that ends a shell and reports its exit code, in seconds."""
MOST_WAIT_S = 25.0


@dataclass(frozen=True, slots=True)
class PendingShell:
    """A request for a shell, with the size and type of its terminal."""

    shell: str
    rows: int
    columns: int
    term: str


@dataclass(frozen=True, slots=True)
class Typed:
    """Input for a shell; ``next`` is the offset of the input after it."""

    data: bytes
    next: int
    rows: int
    columns: int
    hang_up: bool


class AgentShell:
    """A shell in a worker's pod; see ``ShellChannel``.

    Args:
        asked: The request that its agent receives.

    Attributes:
        delivered: The agent has received the request. ``over``: the shell ended or failed to open.
    """

    def __init__(self, asked: PendingShell) -> None:
        self.asked = asked
        self.delivered = self.over = False
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
        """Wait until the agent has opened the shell, and return it. Raises OSError."""
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
        """Wait for output and return it; return nothing after the shell has ended."""
        await self._until(lambda: bool(self._printed) or self.over)
        data, self._printed = self._printed, b""
        self._wake()
        return data

    async def write(self, data: bytes) -> None:
        """Write input to the shell. Raises OSError after it has ended."""
        await self._until(lambda: len(self._typed) < KEPT_BYTES or self.over)
        if self.over:
            raise BrokenPipeError(32, "the shell has ended")
        self._typed += data
        self._wake()

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the terminal."""
        self._size = (rows, columns)
        self._wake()

    async def close(self) -> int | None:
        """End the shell and return its exit code, or None if the agent does not answer in time."""
        self._hung_up = True
        self._wake()
        with contextlib.suppress(TimeoutError):
            await self._until(lambda: self.over, CLOSES_S)
        self.end()
        return self._exit_code

    # ------------------------------------------------------------------ for its agent

    async def typed(
        self, offset: int, size: tuple[int, int], wait_s: float, *, full: bool
    ) -> Typed:
        """Wait for input from an offset on, or for a new size, and return them.

        Args:
            size: Size of the terminal in the agent. ``full``: the terminal accepts no input now.
        """
        if not self._opened:
            self._opened = True
            self._wake()
        fetched = min(max(offset - self._fetched, 0), len(self._typed))
        if fetched:
            del self._typed[:fetched]
            self._fetched += fetched
            self._wake()

        def news() -> bool:
            return (
                self._hung_up or self.over or self._size != size or bool(self._typed and not full)
            )

        with contextlib.suppress(TimeoutError):
            await self._until(news, min(wait_s, MOST_WAIT_S))
        data = b"" if full else bytes(self._typed)
        return Typed(data, self._fetched + len(data), *self._size, self._hung_up or self.over)

    async def printed(self, offset: int, data: bytes) -> int:
        """Accept output from an offset on, once earlier output was read; return the next offset.

        Raises NotFound if the shell has no reader any more, InvalidInput if earlier output is
        missing.
        """
        if offset > self._received:
            raise InvalidInput(f"Only {self._received} bytes were received before offset {offset}.")
        with contextlib.suppress(TimeoutError):
            await self._until(lambda: not self._printed or self._hung_up or self.over, MOST_WAIT_S)
        if self._hung_up or self.over:
            raise gone()
        if not self._printed:
            self._printed = data[self._received - offset :]
            self._received += len(self._printed)
            self._wake()
        return self._received

    def end(self, exit_code: int | None = None, why: str = "") -> None:
        """Record the end of the shell; only the first call counts."""
        if not self.over:
            self.over, self._exit_code, self._why = True, exit_code, why
            self._wake()

    async def _until(self, holds: Callable[[], bool], most_s: float | None = None) -> None:
        """Wait until a condition holds. Raises TimeoutError."""
        async with asyncio.timeout(most_s):
            while not holds():
                await self._changed.wait()

    def _wake(self) -> None:
        """Wake all waiting tasks; later waits are for the next change."""
        self._changed.set()
        self._changed = asyncio.Event()


class AgentShells:
    """The shells of one worker that have not ended."""

    def __init__(self) -> None:
        self._open: dict[str, AgentShell] = {}

    def ask(self, rows: int, columns: int, term: str) -> AgentShell:
        """Return a new shell, requested from the agent; it is kept until it has ended."""
        for id_ in [id_ for id_, shell in self._open.items() if shell.over]:
            del self._open[id_]
        id_ = secrets.token_hex(16)
        shell = self._open[id_] = AgentShell(PendingShell(id_, rows, columns, term))
        return shell

    def pending(self, known: str) -> PendingShell | None:
        """Return the next request for the agent; ``known`` is its last received request."""
        if known in self._open:
            self._open[known].delivered = True
        waiting = (it for it in self._open.values() if not (it.delivered or it.over))
        return next((it.asked for it in waiting), None)

    def one(self, id_: str) -> AgentShell:
        """Return an open shell. Raises NotFound."""
        if id_ not in self._open:
            raise gone()
        return self._open[id_]

    def end(self) -> None:
        """End all shells, since the worker has ended."""
        for shell in self._open.values():
            shell.end()


def gone() -> NotFound:
    """Return the error for an agent whose shell has no reader any more."""
    return NotFound("The shell has ended.")
