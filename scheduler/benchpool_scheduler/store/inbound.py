"""What others write into the store itself, as `kubectl apply` does: the port for it.

A store that only the service writes to has none of this. Whatever is written is a wish: the
service checks it as it checks a submission, and either accepts it with an ordinary commit
(``AddJob`` with the id that is told here) or says at the object why not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from msgspec import Struct

from benchpool_scheduler.store.records import Note


class JobWritten(Struct, frozen=True):
    """A job that nobody has accepted yet. Told once, and again after each edit of a refused one.

    Attributes:
        id: The id that the job has when it is accepted.
        user: In whose name it shall run.
        submission: A ``contract.JobSubmission`` as JSON; what it says was not checked.
        suspended: It shall wait until its user resumes it.
        since: When it was written, seconds since the epoch.
    """

    id: str
    user: str
    submission: bytes
    suspended: bool = False
    since: float = 0.0


class SuspendWritten(Struct, frozen=True):
    """Somebody wants an accepted job to pause (``suspend``) or to go on."""

    id: str
    suspend: bool


class FieldWritten(Struct, frozen=True):
    """Somebody wants an accepted job to have another value of this field from now on.

    Such as ``workers`` (``kubectl scale``) and ``priority``.
    """

    id: str
    field: str
    value: int | str | tuple[str, ...] | None


class JobGone(Struct, frozen=True):
    """Somebody deleted an accepted job: it ends, and nothing of it is kept."""

    id: str


class LeaseGone(Struct, frozen=True):
    """Somebody deleted the object of a build lease; the store still holds the lease."""

    id: str


Written = JobWritten | SuspendWritten | FieldWritten | JobGone | LeaseGone


@runtime_checkable
class Inbound(Protocol):
    """The side of a store that others write to."""

    def written(self) -> AsyncIterator[Written]:
        """Yield what others wrote, in order, from what was there at ``open`` on; one consumer."""

    def id_named(self, name: str) -> str | None:
        """Return the id of the job whose object has this name, None where there is none."""

    async def refuse(self, job: str, reason: Note) -> None:
        """Say at the object why the job was not accepted. One that is gone is no error.

        Errors: Unavailable.
        """

    def put_back(self, job: str, field: str, why: str) -> None:
        """Let a job ask for what it has of a field, and say why; written later.

        For a wish that was told and cannot be met.
        """

    async def restore(self, lease: str) -> None:
        """Make the object of a lease again; one that is not held any more is no error."""
