"""What the API server says no with, as types that callers tell apart.

KubeFailure               an answer of the API server; has ``status``, ``reason``, ``text``
├── KubeGone              410: too old a version; list again
├── KubeAlreadyExists     409: the name is taken
├── KubeConflict          409: somebody wrote in between (or the object is another one now)
├── KubeNotFound          404
├── KubeForbidden         401/403: our rights do not reach, or a policy refuses
└── KubeInvalid           400/422: schema, CEL rule or a ``test`` of a JSON patch
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
    """What a ``KubeStatus`` is about."""

    name: str = ""
    kind: str = ""
    causes: list[Cause] | None = None
    retry_after_seconds: int | None = None


class KubeStatus(Struct, frozen=True):
    """The API server's error object (``v1.Status``)."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class KubeFailure(Exception):
    """The API server has answered, and not with what was asked for.

    Attributes:
        status: The HTTP status.
        reason: Kubernetes' word for it, e.g. ``KubeAlreadyExists``.
        text: Its sentence.
        causes: The fields it names, for ``KubeInvalid``.
    """

    def __init__(self, status: KubeStatus) -> None:
        super().__init__(status.message or status.reason or f"HTTP status {status.code}")
        self.status = status.code
        self.reason = status.reason
        self.text = status.message
        self.causes = tuple((status.details and status.details.causes) or ())


class KubeGone(KubeFailure):
    """A resource version or a continue token that the server no longer knows."""


class KubeConflict(KubeFailure):
    """The object has changed since it was read, or is another object of the same name."""


class KubeAlreadyExists(KubeFailure):
    """There is an object of that name."""


class KubeNotFound(KubeFailure):
    """There is no such object, or no such kind."""


class KubeForbidden(KubeFailure):
    """Our account may not, or an admission policy refuses; ``text`` says which."""


class KubeInvalid(KubeFailure):
    """The object breaks its schema or a rule, or a ``test`` of a JSON patch failed."""


class KubeUnavailable(errors.Unavailable):
    """The API server did not answer, or had no room, for as long as the call had patience."""

    default_code = "kubernetes-away"


_BY_REASON: dict[str, type[KubeFailure]] = {
    "AlreadyExists": KubeAlreadyExists,
    "Conflict": KubeConflict,
    "Expired": KubeGone,
    "Gone": KubeGone,
}
_BY_STATUS: dict[int, type[KubeFailure]] = {
    400: KubeInvalid,
    401: KubeForbidden,
    403: KubeForbidden,
    404: KubeNotFound,
    409: KubeConflict,
    410: KubeGone,
    413: KubeInvalid,
    422: KubeInvalid,
}


def status_of(http_status: int, body: bytes) -> KubeStatus:
    """Read an error answer; one that is no ``KubeStatus`` becomes one.

    >>> status_of(502, b"<html>").message
    'HTTP status 502: <html>'
    """
    try:
        found = msgspec.json.decode(body, type=KubeStatus)
    except msgspec.DecodeError:
        text = body[:200].decode(errors="replace")
        return KubeStatus(
            code=http_status, message=f"HTTP status {http_status}: {text}".rstrip(": ")
        )
    return found if found.code else msgspec.structs.replace(found, code=http_status)


def failure(status: KubeStatus) -> KubeFailure:
    """Return the exception for a status.

    >>> type(failure(KubeStatus(409, "AlreadyExists"))).__name__
    'KubeAlreadyExists'
    """
    kind = _BY_REASON.get(status.reason) or _BY_STATUS.get(status.code) or KubeFailure
    return kind(status)
