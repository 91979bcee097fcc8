"""Errors of the API server, as types that callers distinguish.

KubeFailure               an error answer; has ``status``, ``reason``, ``text``
├── KubeGone              410: the version is too old; list again
├── KubeAlreadyExists     409: the name is taken
├── KubeConflict          409: the object was changed or replaced meanwhile
├── KubeNotFound          404
├── KubeForbidden         401/403: missing permission, or rejected by a policy
└── KubeInvalid           400/422: schema, CEL rule or a ``test`` of a JSON patch
KubeUnavailable           no answer in time, 429 or 5xx until the timeout (an
                          ``errors.Unavailable``: the request itself is valid)
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from benchpool_scheduler import errors


class Cause(Struct, frozen=True):
    """An invalid field."""

    field: str = ""
    message: str = ""
    reason: str = ""


class StatusDetails(Struct, frozen=True, rename="camel"):
    """The object of a ``KubeStatus``."""

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
    """The API server answered with an error.

    Attributes:
        status: The HTTP status.
        reason: Kubernetes' word for the error, e.g. ``AlreadyExists``.
        text: Its message.
        causes: The invalid fields that it names.
    """

    def __init__(self, status: KubeStatus) -> None:
        super().__init__(status.message or status.reason or f"HTTP status {status.code}")
        self.status = status.code
        self.reason = status.reason
        self.text = status.message
        self.causes = tuple((status.details and status.details.causes) or ())


class KubeGone(KubeFailure):
    """The server no longer has a resource version or a continue token."""


class KubeConflict(KubeFailure):
    """The object has changed since it was read, or was replaced under the same name."""


class KubeAlreadyExists(KubeFailure):
    """An object of that name exists."""


class KubeNotFound(KubeFailure):
    """The object or its kind does not exist."""


class KubeForbidden(KubeFailure):
    """The account lacks a permission, or an admission policy rejects the request; see ``text``."""


class KubeInvalid(KubeFailure):
    """The object violates its schema or a rule, or a ``test`` of a JSON patch failed."""


class KubeUnavailable(errors.Unavailable):
    """The API server did not answer, or was overloaded, until the call's timeout."""

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
    """Return the ``KubeStatus`` of an error answer; create one if the body is none.

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
