"""Port to shells inside running workers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from benchpool_scheduler.worker.worker_id import WorkerId


class ShellChannel(Protocol):
    """A shell and its terminal."""

    async def read(self) -> bytes:
        """Wait for output and return it; return nothing after the shell has ended."""

    async def write(self, data: bytes) -> None:
        """Write input, waiting until the shell accepts it. Raises OSError after it has ended."""

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the terminal; no effect after the shell has ended."""

    async def close(self) -> int | None:
        """End the shell, and return its exit code, or None after a signal. May be repeated."""


@runtime_checkable
class ShellHosts(Protocol):
    """Runtime that opens shells inside running workers."""

    async def shell(self, worker: WorkerId, rows: int, columns: int, term: str) -> ShellChannel:
        """Open a shell with the account, variables, folders and limits of the worker.

        Raises OSError; ProcessLookupError if the worker does not run.
        """
