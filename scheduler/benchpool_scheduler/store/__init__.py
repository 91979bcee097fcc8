"""The store port: one durable place for accepted facts.

``sqlite`` keeps them on this machine. A commit is all or nothing, and on disk when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

from benchpool_scheduler.store.records import Change, Conflict, StoredContents


class Store(Protocol):
    """Where accepted facts live; one service owns it at a time."""

    async def open(self) -> StoredContents:
        """Take possession and read everything.

        Errors: Unavailable when another process holds it, or when it is damaged.
        """

    async def close(self) -> None:
        """Write what is left and give it up."""

    async def commit(
        self, *changes: Change, as_written: Callable[[str], None] | None = None
    ) -> None:
        """Make all changes or none; they are durable when this returns.

        Args:
            as_written: Called with the id of a job as soon as its changes are durable, where that
                is before those of others are.

        Errors: Unavailable when they cannot be written, e.g. because the disk is full; Conflict.
        """

    def submission(self, job: str) -> bytes | None:
        """Return the submission of a job as JSON, None when there is no such job."""

    def objects_of(self, user: str, hashes: Iterable[str]) -> frozenset[str]:
        """Return those hashes that the user has uploaded."""

    def stored_bytes(self, user: str) -> int:
        """Return the bytes of all objects that the user has uploaded and that are kept."""

    async def unused_objects(self, before: float) -> tuple[str, ...]:
        """Return objects that no job names and nobody has uploaded since ``before``."""

    async def forget_objects(self, hashes: Iterable[str]) -> None:
        """Remove these objects from the list."""

    def size(self) -> int:
        """Return the bytes that the store occupies on disk."""


@runtime_checkable
class Held(Protocol):
    """The side of a store that may be found lost or damaged, and holds what is new then."""

    async def go_on(self) -> None:
        """Let everything begin again: an administrator has decided. Errors: OSError."""


@runtime_checkable
class HistoryStore(Protocol):
    """The side of a store that leaves out ended jobs of long ago when it is opened."""

    async def older(self) -> StoredContents:
        """Return those that were left out. Errors: Unavailable."""


@runtime_checkable
class Copied(Protocol):
    """The side of a store whose facts are in one file, of which it can write a copy."""

    async def copy_to(self, target: Path) -> None:
        """Write a whole copy while it is used. Errors: Unavailable."""


__all__ = ["Conflict", "Copied", "Held", "HistoryStore", "Store"]
