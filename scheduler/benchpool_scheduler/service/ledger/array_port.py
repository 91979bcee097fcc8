"""What the jobs that wait for whole arrays ask of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from benchpool_scheduler.core.lifecycle.arrays import ArrayStanding


class ArrayPort(Protocol):
    """How arrays stand."""

    def of(self, array: str) -> ArrayStanding | None:
        """Return how an array stands; None for what is none, or cannot be read."""
        ...

    def array_of(self, job: str) -> str | None:
        """Return of which sweep or array a job is a part."""
        ...

    def own(self, user: str, ref: str) -> Sequence[str]:
        """Return a user's sweep or array with this id, else those whose ids begin so."""
        ...


class NoArrays:
    """There are none."""

    def of(self, array: str) -> ArrayStanding | None:
        """Return None."""
        return None

    def array_of(self, job: str) -> str | None:
        """Return None."""
        return None

    def own(self, user: str, ref: str) -> Sequence[str]:
        """Return none."""
        return ()
