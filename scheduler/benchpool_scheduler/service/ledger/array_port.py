"""Port through which the ledger's users query arrays that jobs wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from benchpool_scheduler.core.lifecycle.arrays import ArrayStanding


class ArrayPort(Protocol):
    """State of arrays."""

    def of(self, array: str) -> ArrayStanding | None:
        """Return the state of an array, or None if it does not exist or cannot be read."""
        ...

    def array_of(self, job: str) -> str | None:
        """Return the sweep or array to which a job belongs, or None."""
        ...

    def own(self, user: str, ref: str) -> Sequence[str]:
        """Return a user's sweep or array with this ID, else those whose IDs begin with it."""
        ...


class NoArrays:
    """Port without any arrays."""

    def of(self, array: str) -> ArrayStanding | None:
        """Return None."""
        return None

    def array_of(self, job: str) -> str | None:
        """Return None."""
        return None

    def own(self, user: str, ref: str) -> Sequence[str]:
        """Return an empty sequence."""
        return ()
