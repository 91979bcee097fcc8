"""The port to shells inside running workers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from benchpool_scheduler.worker.worker_id import WorkerId


class ShellChannel(Protocol):
    """A shell and its terminal."""

    async def read(self) -> bytes:
        """Return what it printed, waiting for it; nothing when it has ended."""

    async def write(self, data: bytes) -> None:
        """Type into it, waiting until it takes that. Errors: OSError, it has ended."""

    def resize(self, rows: int, columns: int) -> None:
        """Say how large the terminal is now; no harm when it has ended."""

    async def close(self) -> int | None:
        """End it, and return its exit code; None where a signal ended it. Repeating is harmless."""


@runtime_checkable
class ShellHosts(Protocol):
    """The side of a runtime that opens shells inside running workers."""

    async def shell(self, worker: WorkerId, rows: int, columns: int, term: str) -> ShellChannel:
        """Open one, with what the worker has: account, variables, folders, bounds.

        Errors: OSError; ProcessLookupError where the worker does not run.
        """
