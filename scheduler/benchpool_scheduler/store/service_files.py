"""Users' services: a file for each, written whole.

A replica is recorded with the ID of its job before that job is accepted. After a crash the same job
is accepted for it, and none is started twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from benchpool_scheduler.contract.serving import ServiceAccess
from benchpool_scheduler.contract.submission import JobSubmission
from benchpool_scheduler.store import whole_files

FOLDER = "services"
NAME = re.compile(rf"{FOLDER}/[a-z0-9]{{26}}\.json")
"""Pattern of the paths of these files in a backup."""
MOST_NOTES = 20
"""Maximum number of notes kept of a service."""
_FILE = re.compile(r"[a-z0-9]{26}\.json")


class ReplicaRecord(Struct, frozen=True, omit_defaults=True):
    """Replica whose job has not ended.

    Attributes:
        job: ID of its job, chosen before acceptance.
        port: Port on which it listens.
        leaving_since: Since when it gets no new requests, else None. ``why``: the reason.
    """

    job: str
    version: int
    port: int
    begun: float
    leaving_since: float | None = None
    why: str = ""


class EndedReplica(Struct, frozen=True, omit_defaults=True):
    """Replica that ended by itself; ``text`` is the reason."""

    job: str
    at: float
    version: int
    ready_s: float
    text: str = ""


class ServiceNote(Struct, frozen=True):
    """Event of a service."""

    at: float
    text: str


class ServiceRecord(Struct, frozen=True, omit_defaults=True):
    """Service of a user.

    Attributes:
        mode: Value of ``serving.states.ServiceMode``. ``said``: the reason for it.
        failures: Replicas that ended by themselves, newest first.
        notes: Its events, newest first.
    """

    id: str
    name: str
    user: str
    project: str
    created: float
    submission: JobSubmission
    min_replicas: int
    max_replicas: int
    idle_s: int
    in_flight: int
    access: ServiceAccess
    readiness: str
    mode: str
    mode_since: float
    said: str = ""
    group: str | None = None
    port: int | None = None
    keep_prefix: bool = False
    version: int = 1
    by_service: bool = False
    replicas: tuple[ReplicaRecord, ...] = ()
    failures: tuple[EndedReplica, ...] = ()
    notes: tuple[ServiceNote, ...] = ()

    def noted(self, at: float, text: str) -> ServiceRecord:
        """Return the record with another note; the oldest beyond the limit are dropped."""
        return replace(self, notes=(ServiceNote(at, text), *self.notes)[:MOST_NOTES])


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """Files below one folder. All methods block."""

    folder: Path

    def read(self) -> tuple[list[ServiceRecord], list[str]]:
        """Return all services, and the names of unreadable files. Errors: OSError."""
        found, broken = [], []
        for file in sorted(self.folder.glob("*.json")):
            try:
                found.append(msgspec.json.decode(file.read_bytes(), type=ServiceRecord))
            except msgspec.DecodeError:
                broken.append(file.name)
        return found, broken

    def write(self, service: ServiceRecord) -> None:
        """Write a service durably. Errors: OSError."""
        whole_files.write(self._file(service.id), msgspec.json.encode(service))

    def remove(self, service: str) -> None:
        """Delete a service, if it exists. Errors: OSError."""
        self._file(service).unlink(missing_ok=True)

    def _file(self, service: str) -> Path:
        name = f"{service}.json"
        if not _FILE.fullmatch(name):
            raise ValueError(f"{service!r} is not the id of a service")
        return self.folder / name
