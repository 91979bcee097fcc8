"""Operations on the pool: logs, events, benches, contents, the service."""

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
"""Maximum size of an object, in bytes; equal to the limit for one file of a snapshot."""

USUAL_S = 30.0
"""Timeout of an answer beyond the hold time that the caller allows, in seconds."""

BACKUP_S = 600.0
"""Timeout for a backup, in seconds. A large database takes long to copy and check."""


class LogOperations:
    """Logs and results of jobs."""

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

        A negative ``offset`` counts from the end. ``since`` overrides it.
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
        summary="Read bytes of packed results that could not be written to a folder (tar)",
        query=ResultsQuery,
        gives=Media.BYTES,
    )
    def results(self, id_: str, *, worker: int = 0, offset: int = 0) -> Given:
        """Read bytes of the packed results of a worker (tar).

        Empty at the end, or if no results were sent. Results are sent if the job's folder could not
        be mounted. ``client.results`` unpacks all of them.
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

        Yields new text as it is written, from a byte offset or a time until the log ends.
        """
        query = {"attempt": attempt, "worker": worker, "offset": offset, "since": since}
        return given(query=query, job=id_)


class PoolOperations:
    """State of the pool."""

    @stream(
        "events",
        PoolEvent,
        name="event_stream",
        query=EventsQuery,
        events={"job": Job, "pool": PoolNow, "deleted": JobDeleted, "reset": dict[str, Any]},
        lab=True,
    )
    def events(self, after: int | None = None) -> Given:
        """Follow the events of the pool.

        Yields all changes that you may see, after a sequence number; see ``PoolEvent``.
        """
        return given(query={"after": after})

    @operation(
        "GET",
        "quota",
        Quota,
        query=UserQuery,
        lab=True,
        verb=PlainVerb(("quota",), "Show your build quota and the quotas of your projects."),
        tool=True,
    )
    def quota(self, user: str | None = None) -> Given:
        """Read the build quota and the projects of a user.

        Your own by default.
        """
        return given(query={"user": user})

    @operation("GET", "status", Status, query=StatusQuery, lab=True, tool=True)
    def status(self, *, gpus: bool = True) -> Given:
        """Read the state of the pool in one object."""
        return given(query={"gpus": None if gpus else False})

    @operation(
        "GET",
        "estimates",
        StartEstimates,
        verb=PlainVerb(("estimates",), "Show how accurate the start estimates of this pool were."),
        tool=True,
    )
    def estimates(self) -> Given:
        """Read how accurate the estimated starts were."""
        return given()


class BenchOperations:
    """Leases of build GPUs, and the queue for them."""

    @operation(
        "POST",
        "leases",
        Lease,
        who=Who.OPERATOR,
        body=LeaseRequest,
        statuses={201: "The GPUs are held."},
    )
    def reserve(self, request: LeaseRequest) -> Given:
        """Reserve build GPUs for a server.

        R2; the request's ``spawn`` makes a repeat harmless.
        """
        return given(request)

    @operation(
        "POST",
        "leases/line",
        LineAnswer,
        who=Who.OPERATOR,
        body=LineRequest,
        statuses={201: "The GPUs are held.", 202: "Queued. A repeat keeps the position."},
    )
    def wait_in_line(self, request: LineRequest) -> Given:
        """Reserve build GPUs for a server, or a position in the queue for them."""
        return given(request, takes_s=request.hold_s + USUAL_S)

    @operation(
        "GET",
        "leases/line",
        list[InLine],
        verb=PlainVerb(
            ("bench", "queue"),
            "Show the queue for benches, with waits and estimated starts.",
            "Administrators see all servers, others their own.",
            replaces=("line",),
        ),
        tool=True,
    )
    def line(self) -> Given:
        """List the queue for build GPUs.

        The next server comes first.
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
            ("bench", "reclaim"),
            "Ask the owner of a bench to release it; nothing is stopped.",
            "LEASE is the bench's id. The pool's page shows it in the command below the form.",
            replaces=("ask-back",),
        ),
    )
    def ask_back(self, id_: str, reason: str) -> Given:
        """Ask the owner of a bench to release it.

        The owner sees the administrator's name and the reason. Nothing is stopped. A repeated
        request replaces the earlier one.
        """
        return given(BenchWanted(reason), lease=id_)

    @operation(
        "DELETE",
        "leases/{lease}",
        type(None),
        who=Who.OPERATOR,
        statuses={204: "Released, or already gone."},
    )
    def release(self, id_: str) -> Given:
        """Release a lease, or leave the queue.

        A lease that is already gone is not an error.
        """
        return given(lease=id_)


class ContentOperations:
    """Contents of files, addressed by their hash."""

    @operation("POST", "objects/missing", Missing, body=Missing, max_body=16 * MIB, changes=False)
    def missing_objects(self, hashes: Sequence[str]) -> Given:
        """List the contents that must be uploaded.

        The answer has the hashes that the service lacks.
        """
        return given(Missing(list(hashes)))

    @operation(
        "PUT",
        "objects/{sha256}",
        type(None),
        takes=Media.BYTES,
        max_body=FILE_LIMIT,
        changes=False,
        statuses={204: "Stored."},
    )
    def put_object(self, sha256: str, content: Path | bytes) -> Given:
        """Upload the content of a file.

        The service checks its hash.
        """
        return given(content=content, sha256=sha256)


class ServiceOperations:
    """Administration and health of the service."""

    @operation("POST", "backup", BackupMade, who=Who.ADMIN, takes_s=BACKUP_S)
    def backup(self) -> Given:
        """Back up the databases and the configuration while they are in use.

        The copy is on the machine of the service and replaces the previous one.
        """
        return given()

    @operation("GET", "adopt", SafeModeIssues, who=Who.ADMIN)
    def doubts(self) -> Given:
        """List running jobs that the database does not know, and unreadable records."""
        return given()

    @operation(
        "POST",
        "adopt",
        SafeModeIssues,
        who=Who.ADMIN,
        body=AdoptionRequest,
        verb=PlainVerb(
            ("adopt",),
            "List running jobs that the database does not know; adopt or end them.",
            "Without an ID it only lists. Unreadable records are only listed.",
            positional=("id",),
            reads=doubts,
        ),
    )
    def adopt(self, request: AdoptionRequest) -> Given:
        """Adopt or end a running job or bench that the database does not know.

        An empty request only lists them.
        """
        return given(request)

    @operation("GET", "health", Liveness, who=Who.PUBLIC, lab=True)
    def health(self) -> Given:
        """Check that the service answers."""
        return given()

    @operation("GET", "openapi.json", dict[str, Any])
    def openapi(self) -> Given:
        """Read the OpenAPI document."""
        return given()

    @operation("GET", "metrics", bytes, who=Who.MONITOR, gives=Media.TEXT)
    def metrics(self) -> Given:
        """Read all metrics in Prometheus format."""
        return given()
