"""The port of the store, which keeps accepted facts durably.

``sqlite`` keeps them on this machine. A commit is atomic, and on disk when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, runtime_checkable

from benchpool_scheduler.store.records import Change, Conflict, StoredContents


class Store(Protocol):
    """Durable storage of accepted facts; one service owns it at a time."""

    async def open(self) -> StoredContents:
        """Lock the store and return its contents.

        Errors: Unavailable when another process holds it, or when it is damaged.
        """

    async def close(self) -> None:
        """Write pending changes and release the store."""

    async def commit(
        self, *changes: Change, as_written: Callable[[str], None] | None = None
    ) -> None:
        """Apply all changes or none; they are durable when this returns.

        Args:
            as_written: Called with a job ID as soon as the changes of that job are durable, where
                that is earlier than the whole commit.

        Errors: Unavailable when they cannot be written, e.g. because the disk is full; Conflict.
        """

    def submission(self, job: str) -> bytes | None:
        """Return the submission of a job as JSON, or None when the job does not exist."""

    def objects_of(self, user: str, hashes: Iterable[str]) -> frozenset[str]:
        """Return the hashes that the user has uploaded."""

    def stored_bytes(self, user: str) -> int:
        """Return the size in bytes of all stored objects that the user has uploaded."""

    async def unused_objects(self, before: float) -> tuple[str, ...]:
        """Return objects that no job references and no user has uploaded since ``before``."""

    async def forget_objects(self, hashes: Iterable[str]) -> None:
        """Remove these objects from the list of uploads."""

    def size(self) -> int:
        """Return the size of the store on disk, in bytes."""


@runtime_checkable
class Held(Protocol):
    """Side of a store that blocks new jobs when it was found lost or damaged."""

    async def release_hold(self) -> None:
        """Allow new jobs again, after an administrator's decision. Errors: OSError."""


@runtime_checkable
class HistoryStore(Protocol):
    """Side of a store that does not load jobs that ended long ago when it is opened."""

    async def older(self) -> StoredContents:
        """Return the jobs that were not loaded. Errors: Unavailable."""


@runtime_checkable
class Copied(Protocol):
    """Side of a store that keeps its facts in one file and can copy it."""

    async def copy_to(self, target: Path) -> None:
        """Write a complete copy while the store is in use. Errors: Unavailable."""


__all__ = ["Conflict", "Copied", "Held", "HistoryStore", "Store"]
