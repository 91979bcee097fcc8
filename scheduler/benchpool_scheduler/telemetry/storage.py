"""The port of the telemetry storage, for the differences between a file and a server."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError, OperationalError

from benchpool_scheduler.telemetry import schema


class Storage(Protocol):
    """Storage of the tables."""

    @property
    def place(self) -> str:
        """Return its location in words, without a password."""

    def connect(self) -> Engine:
        """Return an engine, with all tables created.

        Errors: OperationalError when the storage cannot be used now; another DatabaseError when its
        data is unusable.
        """

    def lost(self) -> str | None:
        """Return how an opened database was lost, as the rest of a sentence, or None."""

    def set_aside(self, damage: DatabaseError) -> str | None:
        """Move unusable data aside, replacing data that was set aside earlier.

        Returns:
            Its new location, as a sentence. None when it stays, because the data is intact.
        """

    def size(self) -> int:
        """Return the size of tables, indexes and logs in bytes."""


class UnknownLayout(DatabaseError):
    """Tables with the layout of another release of benchpool."""

    def __init__(self, found: object) -> None:
        super().__init__(
            "", None, Exception(f"layout {found}, but this release supports {schema.LAYOUT}")
        )


def is_passing(error: DatabaseError) -> bool:
    """Return whether the error is temporary: locked, full or unreachable."""
    return isinstance(error, OperationalError)
