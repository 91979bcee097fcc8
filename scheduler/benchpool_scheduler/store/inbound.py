"""The port for changes that other clients write into the store, e.g. with `kubectl apply`.

A store that only the service writes to does not implement it. A written object is a request. The
service checks it like a submission. It accepts it with an ordinary commit (``AddJob`` with the ID
given here) or writes the reason for the refusal to the object.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from msgspec import Struct

from benchpool_scheduler.store.records import Note


class JobWritten(Struct, frozen=True):
    """Job that is not yet accepted. Reported once, and again after each edit of a refused job.

    Attributes:
        id: The ID of the job once it is accepted.
        user: The user in whose name it will run.
        submission: A ``contract.JobSubmission`` as JSON, not yet checked.
        suspended: Whether it waits until its user resumes it.
        since: When it was written, seconds since the epoch.
    """

    id: str
    user: str
    submission: bytes
    suspended: bool = False
    since: float = 0.0


class SuspendWritten(Struct, frozen=True):
    """Request to pause (``suspend``) or resume an accepted job."""

    id: str
    suspend: bool


class FieldWritten(Struct, frozen=True):
    """Request to change a field of an accepted job.

    Examples are ``workers`` (``kubectl scale``) and ``priority``.
    """

    id: str
    field: str
    value: int | str | tuple[str, ...] | None


class JobGone(Struct, frozen=True):
    """Deletion of the object of an accepted job: the job ends, and its records are removed."""

    id: str


class LeaseGone(Struct, frozen=True):
    """Deletion of the object of a build lease; the store still holds the lease."""

    id: str


Written = JobWritten | SuspendWritten | FieldWritten | JobGone | LeaseGone


@runtime_checkable
class Inbound(Protocol):
    """Side of a store that other clients write to."""

    def written(self) -> AsyncIterator[Written]:
        """Yield external changes in order, beginning with those found at ``open``; one consumer."""

    def id_named(self, name: str) -> str | None:
        """Return the ID of the job whose object has this name, or None."""

    async def refuse(self, job: str, reason: Note) -> None:
        """Write to the object why its job was not accepted; a missing object is no error.

        Errors: Unavailable.
        """

    def put_back(self, job: str, field: str, why: str) -> None:
        """Reset a field of a job's object to its accepted value, with a reason; written later.

        For a reported request that cannot be granted.
        """

    async def restore(self, lease: str) -> None:
        """Create the object of a lease again; a lease that is no longer held is no error."""
