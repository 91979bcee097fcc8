"""The table of calls: one pure function per verb of the HTTP API.

A ``Call`` says what to send and what comes back; ``Client`` and ``AsyncClient`` send it. Nothing
here opens a connection, so both clients, and whoever forwards a call, use the same requests.

>>> call = job("a" * 26)
>>> call.method, call.path
('GET', 'jobs/aaaaaaaaaaaaaaaaaaaaaaaaaa')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import NoneType
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from benchpool_scheduler.contract import (
    ConfigurationChange,
    InLine,
    Job,
    JobChange,
    JobDetail,
    JobSubmission,
    Lease,
    LeaseRequest,
    LineAnswer,
    LineRequest,
    Missing,
    Preview,
    Quota,
    Status,
    WhatIf,
    WhatIfQuestion,
    Why,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LogRange:
    """Some bytes of a log.

    Attributes:
        attempt: Whose log it is. ``offset``: where the bytes begin; ``next``: where to go on.
        skipped: Bytes that the size bound dropped just before ``offset``.
        ended: Nothing more will come after these.
    """

    data: bytes
    attempt: int
    offset: int
    next: int
    skipped: int
    ended: bool


JSON = "application/json"
YAML = "text/yaml"
BYTES = "application/octet-stream"

USUAL_S = 30.0
"""How long an answer may take beside the time for which the caller lets it be held back."""

WHATIF_S = 600.0
"""A what-if over a long history replays all of its jobs, twice."""

Value = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and the type of its answer.

    Attributes:
        path: Below ``/api/v1/``, already quoted.
        returns: Type of the JSON answer; ``NoneType`` for none, ``bytes`` and ``LogRange`` for the
            body as it is.
        takes_s: The answer may take so long to compute; None for the usual.
        repeatable: A second sending changes nothing, so a lost answer may be asked for again.
    """

    method: str
    path: str
    returns: type[T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str | None = None
    repeatable: bool = False
    takes_s: float | None = None


def submit(submission: JobSubmission) -> Call[Job]:
    """Accept a job; with a ``key`` a repeat answers the same job."""
    return _post("jobs", Job, submission, repeatable=submission.key is not None)


def preview(submission: JobSubmission) -> Call[Preview]:
    """Say what would happen if this were submitted now."""
    return _post("preview", Preview, submission, repeatable=True)


def jobs(
    *,
    all_: bool = False,
    project: str | None = None,
    state: str | None = None,
    limit: int | None = None,
) -> Call[list[Job]]:
    """List jobs, newest first: one's own, or with ``all_`` every one that one may see."""
    query = {"all": all_ or None, "project": project, "state": state, "limit": limit}
    return _get("jobs", list[Job], query)


def job(id_: str) -> Call[JobDetail]:
    """Read a job and its attempts."""
    return _get(_job_path(id_), JobDetail)


def why(id_: str) -> Call[Why]:
    """Ask why a job waits (R22)."""
    return _get(_job_path(id_, "why"), Why)


def submission(id_: str) -> Call[JobSubmission]:
    """Read back what was submitted."""
    return _get(_job_path(id_, "submission"), JobSubmission)


def act(id_: str, action: str, reason: str | None = None) -> Call[Job]:
    """``pause``, ``resume`` or ``cancel`` a job; the reason is shown to its owner.

    Each is a wish for a state, so saying it twice is saying it once.
    """
    body = {} if reason is None else {"reason": reason}
    return _post(_job_path(id_, action), Job, body, repeatable=True)


def change(id_: str, *, priority: int | None = None, workers: int | None = None) -> Call[Job]:
    """Give an accepted job another priority, other workers, or both; None leaves it as it is."""
    body = JobChange(priority, workers)
    return _post(_job_path(id_, "change"), Job, body, repeatable=True)


def log(
    id_: str,
    *,
    attempt: int | None = None,
    worker: int = 0,
    offset: int | None = None,
    limit: int | None = None,
    since: datetime | None = None,
) -> Call[LogRange]:
    """Read bytes of a log; a negative offset counts from its end."""
    query = {
        "attempt": attempt,
        "worker": worker,
        "offset": offset,
        "limit": limit,
        "since": _time(since),
    }
    return _get(_job_path(id_, "logs"), LogRange, query)


def results(id_: str, *, worker: int = 0, offset: int = 0) -> Call[bytes]:
    """Read bytes of the packed results of a worker; none come at the end, or where none were sent.

    Results are sent where the job's folder could not be mounted.
    """
    return _get(_job_path(id_, "results"), bytes, {"worker": worker, "offset": offset})


def follow_log(
    id_: str,
    *,
    attempt: int | None = None,
    worker: int = 0,
    offset: int = 0,
    since: datetime | None = None,
) -> Call[bytes]:
    """Open the event stream of a log from a byte offset, or from a time."""
    query = {"attempt": attempt, "worker": worker, "offset": offset, "since": _time(since)}
    return _get(_job_path(id_, "logs", "stream"), bytes, query)


def events(after: int | None = None) -> Call[bytes]:
    """Open the event stream of all that one may see, after a sequence number."""
    return _get("events", bytes, {"after": after})


def quota(user: str | None = None) -> Call[Quota]:
    """Read a user's build quota and projects; one's own by default."""
    return _get("quota", Quota, {"user": user})


def status() -> Call[Status]:
    """Read the pool in one object."""
    return _get("status", Status)


def reserve(request: LeaseRequest) -> Call[Lease]:
    """Reserve build GPUs for a server that starts (R2); repeats by ``spawn`` are harmless."""
    return _post("leases", Lease, request, repeatable=True)


def wait_in_line(request: LineRequest) -> Call[LineAnswer]:
    """Reserve build GPUs for a server, or keep its place in line for them."""
    call = _post("leases/line", LineAnswer, request, repeatable=True)
    return replace(call, takes_s=request.hold_s + USUAL_S)


def line() -> Call[list[InLine]]:
    """List who waits in line for build GPUs, the next one first."""
    return _get("leases/line", list[InLine])


def release(id_: str) -> Call[None]:
    """Give a lease back; one that is gone already is no error."""
    return Call("DELETE", f"leases/{quote(id_, safe='')}", NoneType, repeatable=True)


def leases(user: str | None = None) -> Call[list[Lease]]:
    """List leases."""
    return _get("leases", list[Lease], {"user": user})


def missing_objects(hashes: Sequence[str]) -> Call[Missing]:
    """Ask which of these contents the service lacks."""
    return _post("objects/missing", Missing, Missing(list(hashes)), repeatable=True)


def put_object(sha256: str) -> Call[None]:
    """Upload one content; its bytes are given to the client beside this call."""
    path = f"objects/{quote(sha256, safe='')}"
    return Call("PUT", path, NoneType, content_type=BYTES, repeatable=True)


def check_config(text: str) -> Call[ConfigurationChange]:
    """Say what a ``benchpool.yaml`` would change, without using it."""
    return _configuration("config/check", text)


def apply_config(text: str) -> Call[ConfigurationChange]:
    """Use this ``benchpool.yaml`` from now on: all or nothing."""
    return _configuration("config/apply", text)


def whatif(question: WhatIfQuestion) -> Call[WhatIf]:
    """Say what would be otherwise with another ``benchpool.yaml`` or more GPUs."""
    return replace(_post("whatif", WhatIf, question, repeatable=True), takes_s=WHATIF_S)


def history(days: float) -> Call[bytes]:
    """Read what ran and ended in the last days, as a trace."""
    return Call("GET", "history", bytes, query=(("days", str(days)),), repeatable=True)


def _configuration(path: str, text: str) -> Call[ConfigurationChange]:
    return Call(
        "POST",
        path,
        ConfigurationChange,
        body=text.encode(),
        content_type=YAML,
        repeatable=True,
    )


def _job_path(id_: str, *rest: str) -> str:
    return "/".join(quote(part, safe="") for part in ("jobs", id_, *rest))


def _get(path: str, returns: type[T], query: Mapping[str, Value] | None = None) -> Call[T]:
    pairs = tuple((key, _text(value)) for key, value in (query or {}).items() if value is not None)
    return Call("GET", path, returns, query=pairs, repeatable=True)


def _post(path: str, returns: type[T], body: object, *, repeatable: bool) -> Call[T]:
    encoded = msgspec.json.encode(body)
    return Call("POST", path, returns, body=encoded, content_type=JSON, repeatable=repeatable)


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat()


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
