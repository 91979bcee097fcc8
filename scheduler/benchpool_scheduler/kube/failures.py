"""What the API server says no with, as types that callers tell apart.

KubeFailure               an answer of the API server; has ``status``, ``reason``, ``text``
├── Gone                  410: too old a version; list again
├── AlreadyExists         409: the name is taken
├── Conflict              409: somebody wrote in between (or the object is another one now)
├── NotFound              404
├── Forbidden             401/403: our rights do not reach, or a policy refuses
└── Invalid               400/422: schema, CEL rule or a ``test`` of a JSON patch
KubeUnavailable           no answer in time, 429 or 5xx until patience ended (an
                          ``errors.Unavailable``: nothing is wrong with the request)
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from benchpool_scheduler import errors


class Cause(Struct, frozen=True):
    """One field that is wrong."""

    field: str = ""
    message: str = ""
    reason: str = ""


class StatusDetails(Struct, frozen=True, rename="camel"):
    """What a ``Status`` is about."""

    name: str = ""
    kind: str = ""
    causes: list[Cause] | None = None
    retry_after_seconds: int | None = None


class Status(Struct, frozen=True):
    """The API server's error object (``v1.Status``)."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class KubeFailure(Exception):
    """The API server has answered, and not with what was asked for.

    Attributes:
        status: The HTTP status.
        reason: Kubernetes' word for it, e.g. ``AlreadyExists``.
        text: Its sentence.
        causes: The fields it names, for ``Invalid``.
    """

    def __init__(self, status: Status) -> None:
        super().__init__(status.message or status.reason or f"HTTP status {status.code}")
        self.status = status.code
        self.reason = status.reason
        self.text = status.message
        self.causes = tuple((status.details and status.details.causes) or ())


class Gone(KubeFailure):
    """A resource version or a continue token that the server no longer knows."""


class Conflict(KubeFailure):
    """The object has changed since it was read, or is another object of the same name."""


class AlreadyExists(KubeFailure):
    """There is an object of that name."""


class NotFound(KubeFailure):
    """There is no such object, or no such kind."""


class Forbidden(KubeFailure):
    """Our account may not, or an admission policy refuses; ``text`` says which."""


class Invalid(KubeFailure):
    """The object breaks its schema or a rule, or a ``test`` of a JSON patch failed."""


class KubeUnavailable(errors.Unavailable):
    """The API server did not answer, or had no room, for as long as the call had patience."""

    default_code = "kubernetes-away"


_BY_REASON: dict[str, type[KubeFailure]] = {
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Gone,
    "Gone": Gone,
}
_BY_STATUS: dict[int, type[KubeFailure]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: Invalid,
    422: Invalid,
}


def status_of(http_status: int, body: bytes) -> Status:
    """Read an error answer; one that is no ``Status`` becomes one.

    >>> status_of(502, b"<html>").message
    'HTTP status 502: <html>'
    """
    try:
        found = msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:
        text = body[:200].decode(errors="replace")
        return Status(code=http_status, message=f"HTTP status {http_status}: {text}".rstrip(": "))
    return found if found.code else msgspec.structs.replace(found, code=http_status)


def failure(status: Status) -> KubeFailure:
    """Return the exception for a status.

    >>> type(failure(Status(409, "AlreadyExists"))).__name__
    'AlreadyExists'
    """
    kind = _BY_REASON.get(status.reason) or _BY_STATUS.get(status.code) or KubeFailure
    return kind(status)
