"""The operations on the pool: logs, events, benches, contents, the service."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchpool_scheduler.contract.backups import BackupMade
from benchpool_scheduler.contract.benches import (
    BenchWanted,
    InLine,
    Lease,
    LeaseRequest,
    LineAnswer,
    LineRequest,
)
from benchpool_scheduler.contract.events import EventsQuery, JobDeleted, PoolEvent, PoolNow
from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.jobs import Job, StartEstimates
from benchpool_scheduler.contract.logs import (
    FollowQuery,
    LogEnd,
    LogQuery,
    LogRange,
    LogText,
    ResultsQuery,
)
from benchpool_scheduler.contract.operation import (
    MIB,
    Given,
    Media,
    Who,
    given,
    operation,
    stream,
)
from benchpool_scheduler.contract.pool import Liveness, Quota, Status, StatusQuery, UserQuery
from benchpool_scheduler.contract.safe_mode import AdoptionRequest, SafeModeIssues
from benchpool_scheduler.contract.submission import Missing

FILE_LIMIT = 2048 * MIB
"""Largest object; the same bound as a snapshot's for one file."""

USUAL_S = 30.0
"""How long an answer may take beside the time for which the caller lets it be held back."""

BACKUP_S = 600.0
"""A large database takes its time to be copied and checked."""


class LogOperations:
    """What jobs have written."""

    @operation(
        "GET", "jobs/{job}/logs", LogRange, query=LogQuery, gives=Media.TEXT, lab=True, tool=True
    )
    def log(
        self,
        id_: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int | None = None,
        limit: int | None = None,
        since: datetime | None = None,
    ) -> Given:
        """Read bytes of a log.

        A negative ``offset`` counts from its end; ``since`` goes before it.
        """
        query = {
            "attempt": attempt,
            "worker": worker,
            "offset": offset,
            "limit": limit,
            "since": since,
        }
        return given(query=query, job=id_)

    @operation(
        "GET",
        "jobs/{job}/results",
        bytes,
        summary="Read bytes of results that were sent because no folder could take them, as tar",
        query=ResultsQuery,
        gives=Media.BYTES,
    )
    def results(self, id_: str, *, worker: int = 0, offset: int = 0) -> Given:
        """Read bytes of the packed results of a worker (tar).

        None come at the end, or where none were sent: results are sent where the job's folder
        could not be mounted. ``client.results`` unpacks all of them.
        """
        return given(query={"worker": worker, "offset": offset}, job=id_)

    @stream(
        "jobs/{job}/logs/stream",
        LogText,
        name="log_stream",
        query=FollowQuery,
        events={"log": LogText, "end": LogEnd},
        lab=True,
    )
    def follow_log(
        self,
        id_: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        since: datetime | None = None,
    ) -> Given:
        """Follow a log.

        Yields it as it is written, from a byte offset or a time until it ends.
        """
        query = {"attempt": attempt, "worker": worker, "offset": offset, "since": since}
        return given(query=query, job=id_)


class PoolOperations:
    """The pool to look at."""

    @stream(
        "events",
        PoolEvent,
        name="event_stream",
        query=EventsQuery,
        events={"job": Job, "pool": PoolNow, "deleted": JobDeleted, "reset": dict[str, Any]},
        lab=True,
    )
    def events(self, after: int | None = None) -> Given:
        """Follow what happens.

        Yields all changes that one may see, from after a sequence number; see ``PoolEvent``.
        """
        return given(query={"after": after})

    @operation(
        "GET",
        "quota",
        Quota,
        query=UserQuery,
        lab=True,
        verb=PlainVerb(("quota",), "Say what you have on the bench and in your projects."),
        tool=True,
    )
    def quota(self, user: str | None = None) -> Given:
        """Read build quota and projects of a user.

        One's own by default.
        """
        return given(query={"user": user})

    @operation("GET", "status", Status, query=StatusQuery, lab=True, tool=True)
    def status(self, *, gpus: bool = True) -> Given:
        """Read the pool in one object."""
        return given(query={"gpus": None if gpus else False})

    @operation(
        "GET",
        "estimates",
        StartEstimates,
        verb=PlainVerb(("estimates",), "Say how true the estimates of starts are in this pool."),
        tool=True,
    )
    def estimates(self) -> Given:
        """Read how true the estimates of starts were."""
        return given()


class BenchOperations:
    """Leases of build GPUs, and the line for them."""

    @operation(
        "POST",
        "leases",
        Lease,
        who=Who.OPERATOR,
        body=LeaseRequest,
        statuses={201: "Held."},
    )
    def reserve(self, request: LeaseRequest) -> Given:
        """Hold build GPUs for a server.

        R2; the request's ``spawn`` makes a repeat harmless.
        """
        return given(request)

    @operation(
        "POST",
        "leases/line",
        LineAnswer,
        who=Who.OPERATOR,
        body=LineRequest,
        statuses={201: "Held.", 202: "In line; asking again keeps the place."},
    )
    def wait_in_line(self, request: LineRequest) -> Given:
        """Hold build GPUs for a server, or its place in line."""
        return given(request, takes_s=request.hold_s + USUAL_S)

    @operation(
        "GET",
        "leases/line",
        list[InLine],
        verb=PlainVerb(
            ("line",),
            "Say who waits in line for a bench, since when, and until when.",
            "Administrators see everybody, others their own servers.",
        ),
        tool=True,
    )
    def line(self) -> Given:
        """List who waits in line for build GPUs.

        The next one first.
        """
        return given()

    @operation("GET", "leases", list[Lease], who=Who.OPERATOR, query=UserQuery)
    def leases(self, user: str | None = None) -> Given:
        """List leases."""
        return given(query={"user": user})

    @operation(
        "POST",
        "leases/{lease}/ask-back",
        Lease,
        who=Who.ADMIN,
        body=BenchWanted,
        verb=PlainVerb(
            ("ask-back",),
            "Ask the owner of a bench to give it back; nothing is stopped.",
            "LEASE is the bench's id: the pool's page shows it in the command below the form.",
        ),
    )
    def ask_back(self, id_: str, reason: str) -> Given:
        """Ask the owner of a bench to give it back.

        The owner reads who asked and why; nothing is stopped. Asking again takes its place.
        """
        return given(BenchWanted(reason), lease=id_)

    @operation(
        "DELETE",
        "leases/{lease}",
        type(None),
        who=Who.OPERATOR,
        statuses={204: "Given back, or gone already."},
    )
    def release(self, id_: str) -> Given:
        """Give a lease back, or leave the line.

        One that is gone already is no error.
        """
        return given(lease=id_)


class ContentOperations:
    """Contents of files, by their hash."""

    @operation("POST", "objects/missing", Missing, body=Missing, max_body=16 * MIB, changes=False)
    def missing_objects(self, hashes: Sequence[str]) -> Given:
        """Ask which contents to upload.

        The answer has those that the service lacks.
        """
        return given(Missing(list(hashes)))

    @operation(
        "PUT",
        "objects/{sha256}",
        type(None),
        takes=Media.BYTES,
        max_body=FILE_LIMIT,
        changes=False,
        statuses={204: "Kept."},
    )
    def put_object(self, sha256: str, content: Path | bytes) -> Given:
        """Upload a content.

        The service checks its hash.
        """
        return given(content=content, sha256=sha256)


class ServiceOperations:
    """The service itself."""

    @operation("POST", "backup", BackupMade, who=Who.ADMIN, takes_s=BACKUP_S)
    def backup(self) -> Given:
        """Copy the databases and the configuration while they are used.

        The copy lies on the machine of the service; one that was asked for before is replaced.
        """
        return given()

    @operation("GET", "adopt", SafeModeIssues, who=Who.ADMIN)
    def doubts(self) -> Given:
        """List running jobs that the database does not know, and what cannot be read."""
        return given()

    @operation(
        "POST",
        "adopt",
        SafeModeIssues,
        who=Who.ADMIN,
        body=AdoptionRequest,
        verb=PlainVerb(
            ("adopt",),
            "List running jobs that the database does not know, take them in or end them.",
            "Without an ID it only lists; so it does with what cannot be read.",
            positional=("id",),
            reads=doubts,
        ),
    )
    def adopt(self, request: AdoptionRequest) -> Given:
        """Take in or end what runs and is not known.

        An empty request only lists.
        """
        return given(request)

    @operation("GET", "health", Liveness, who=Who.ANYBODY, lab=True)
    def health(self) -> Given:
        """Say that the service answers."""
        return given()

    @operation("GET", "openapi.json", dict[str, Any])
    def openapi(self) -> Given:
        """Read this document."""
        return given()

    @operation("GET", "metrics", bytes, who=Who.MONITOR, gives=Media.TEXT)
    def metrics(self) -> Given:
        """Read all figures in Prometheus' format."""
        return given()
