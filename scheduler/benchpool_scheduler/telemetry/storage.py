"""Where the telemetry database lies: what a file and a server each do in their own way."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError, OperationalError

from benchpool_scheduler.telemetry import schema


class Storage(Protocol):
    """A place for the tables."""

    @property
    def place(self) -> str:
        """Return the place in words; it holds no password."""

    def connect(self) -> Engine:
        """Return an engine whose tables are there.

        Errors: OperationalError where the place cannot be used now; another DatabaseError where
        what lies there cannot be.
        """

    def lost(self) -> str | None:
        """Return what became of what was opened, as the rest of a sentence; None for nothing."""

    def set_aside(self, damage: DatabaseError) -> str | None:
        """Put what lies there out of the way; what was put there before goes.

        Returns:
            Where it lies now, as a sentence. None where it was left, since nothing is wrong there.
        """

    def size(self) -> int:
        """Return the bytes of the tables and of what belongs to them."""


class UnknownLayout(DatabaseError):
    """The tables are of another release of benchpool."""

    def __init__(self, found: object) -> None:
        super().__init__("", None, Exception(f"layout {found}, this release knows {schema.LAYOUT}"))


def is_passing(error: DatabaseError) -> bool:
    """Return whether nothing need be wrong with the tables: locked, full, not reached."""
    return isinstance(error, OperationalError)
