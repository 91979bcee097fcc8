"""Conversion of users' kubectl changes to jobs into events for the service; free of I/O.

A job that was created in Kubernetes is reported once, with the ID that follows from its UID. While
it is refused, it is reported again after each edit. For an accepted job, only its deletion and
changes of ``suspend`` and the ``SpecRequests`` are reported. Changes made while no scheduler ran
are reported at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from benchpool_scheduler.contract import SnapshotFile
from benchpool_scheduler.contract.kubernetes import ACCEPTED
from benchpool_scheduler.resources.declaring import ObjectMeta
from benchpool_scheduler.resources.jobs import SpecRequests, TrainingJobSpec, TrainingJobStatus
from benchpool_scheduler.resources.submissions import as_submission
from benchpool_scheduler.store.inbound import (
    FieldWritten,
    JobGone,
    JobWritten,
    SuspendWritten,
    Written,
)
from benchpool_scheduler.store.kubernetes import edits
from benchpool_scheduler.store.kubernetes.cache import CachedJob
from benchpool_scheduler.store.kubernetes.decoding import accepted_of, stored_job
from benchpool_scheduler.store.kubernetes.identifiers import id_of
from benchpool_scheduler.store.records import Note

NO_USER = Note(
    "no-user",
    "spec.user is missing: a job runs in the name of a user of the Hub.",
    "Set spec.user and apply it again.",
)


NO_BUNDLE = Note(
    "missing-objects",
    "spec.bundle names no list of files that its user has uploaded.",
    "Upload it with benchpool, or omit bundle and list the files in spec.files.",
)


NOT_BY_HAND = Note(
    "invalid-input",
    "spec.environment is written by the scheduler, for jobs that come in through its API.",
    "Write variables into spec.env, which is visible to all who may read jobs, or use `benchpool "
    "submit`.",
)


class JobObject(Struct, frozen=True):
    """``TrainingJob`` as read from the API server; the spec is decoded only when needed."""

    metadata: ObjectMeta
    spec: msgspec.Raw
    status: TrainingJobStatus = TrainingJobStatus()

    @property
    def id(self) -> str:
        """Return the ID that the job has or will have."""
        if self.status.id is not None:
            return self.status.id
        return self.metadata.name if self.accepted else id_of(self.metadata.uid or "")

    @property
    def accepted(self) -> bool:
        """Return whether the scheduler has accepted it."""
        return self.status.id is not None or ACCEPTED in (self.metadata.annotations or {})

    @property
    def refused(self) -> bool:
        """Return whether its current generation was refused."""
        status = self.status
        answered = any(it.type == "Accepted" and it.status == "False" for it in status.conditions)
        return answered and status.observed_generation == (self.metadata.generation or 0)

    @property
    def created(self) -> float:
        """Return when it was accepted or created, in seconds since the epoch."""
        text = (self.metadata.annotations or {}).get(ACCEPTED) or self.metadata.creation_timestamp
        return datetime.fromisoformat(text).timestamp() if text else 0.0


class _Suspend(Struct, frozen=True):
    suspend: bool = False


@dataclass(slots=True)
class OfferedJob:
    """Job that the service has not yet accepted.

    Attributes:
        version: Last known resource version. ``spec``: its spec as JSON.
    """

    id: str
    name: str
    uid: str
    version: str
    generation: int
    spec: bytes
    suspend: bool
    requests: SpecRequests
    created: float


class KeptJob(Struct, frozen=True):
    """Cached parts of a job's object, with the offer until it is accepted."""

    id: str
    name: str
    uid: str
    version: str
    generation: int
    suspend: bool
    requests: SpecRequests
    epoch: int
    revision: int
    refused: bool
    offer: OfferedJob | None = None
    edited: bytes = b""

    @property
    def spec(self) -> bytes:
        """Return its spec as JSON if it may differ from the accepted one, else empty."""
        return self.edited or (b"" if self.offer is None else self.offer.spec)


def seen(read: JobObject, cached: CachedJob | None = None) -> KeptJob | None:
    """Reduce a job to its cached parts; return None for an object that is being deleted.

    Args:
        cached: The job as it was accepted, if it was.
    """
    about = read.metadata
    if about.deletion_timestamp is not None:
        return None
    suspend = msgspec.json.decode(read.spec, type=_Suspend).suspend
    requests = msgspec.json.decode(read.spec, type=SpecRequests)
    offer = None
    if not read.accepted and not read.refused:
        offer = OfferedJob(
            read.id,
            about.name,
            about.uid or "",
            about.resource_version or "",
            about.generation or 0,
            bytes(read.spec),
            suspend,
            requests,
            read.created,
        )
    return KeptJob(
        read.id,
        about.name,
        about.uid or "",
        about.resource_version or "",
        about.generation or 0,
        suspend,
        requests,
        read.status.epoch,
        read.status.revision,
        read.refused,
        offer,
        bytes(read.spec) if cached and (about.generation or 0) > cached.generation else b"",
    )


def found(read: JobObject, it: KeptJob, spec: TrainingJobSpec) -> CachedJob:
    """Return an accepted job as it was found at the start."""
    if spec.name is None:
        spec = msgspec.structs.replace(spec, name=it.name[:100])
    stored = stored_job(it.id, spec, read.status, read.created)
    return CachedJob(
        stored,
        it.name,
        bytes(read.spec),
        uid=it.uid,
        version=it.version,
        generation=it.generation,
        revision=max(1, it.revision),
        written=max(1, it.revision),
        suspend=read.status.suspend if read.status.id is not None else it.suspend,
        requests=msgspec.structs.replace(it.requests, **accepted_of(stored.job.spec)),
        announced=stored.job.state if read.status.state is not None else None,
    )


def apply(
    it: KeptJob, cached: CachedJob | None, offers: dict[str, OfferedJob]
) -> Iterator[Written]:
    """Yield the changes of an existing job, and update ``cached`` and ``offers``."""
    if cached is not None:
        if it.uid != cached.uid:
            return  # being created now, or an older object of the same name
        if it.spec and it.generation > cached.generation and edits.changed(cached.spec, it.spec):
            cached.edited = True  # the next write puts it back
            cached.revision += 1
        elif it.revision == cached.written:
            # Our own last write, or an edit after it: the next write uses this version.
            cached.version = it.version
        cached.generation = max(cached.generation, it.generation)
        if it.suspend != cached.suspend:
            cached.suspend = it.suspend
            cached.revision += 1
            yield SuspendWritten(it.id, it.suspend)
        was, cached.requests = asdict(cached.requests), it.requests
        for field, value in asdict(it.requests).items():
            if value != was[field]:
                yield FieldWritten(it.id, field, value)
        return
    if it.offer is None:
        return
    known = offers.get(it.id)
    if known is not None and known.generation == it.generation:
        known.version = it.version
        return
    offers[it.id] = it.offer
    yield written(it.offer)


def forget(
    it: KeptJob, cached: CachedJob | None, offers: dict[str, OfferedJob]
) -> Iterator[Written]:
    """Yield the changes that follow from a deletion."""
    offers.pop(it.id, None)
    if cached is not None and cached.uid == it.uid:
        cached.gone = True
        yield JobGone(it.id)


def written(offer: OfferedJob, files: Sequence[SnapshotFile] = ()) -> JobWritten:
    """Return the event for a job that waits to be accepted; ``files`` are those of its bundle."""
    spec = msgspec.json.decode(offer.spec, type=TrainingJobSpec)
    submission = as_submission(spec, files)
    if submission.name is None:
        submission = msgspec.structs.replace(submission, name=offer.name[:100])
    return JobWritten(
        id=offer.id,
        user=spec.user or "",
        submission=msgspec.json.encode(submission),
        suspended=offer.suspend,
        since=offer.created,
    )
