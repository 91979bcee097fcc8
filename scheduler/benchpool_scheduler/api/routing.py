"""What a route declares: address, who may ask, what goes in, what comes out, who answers.

The table of routes (``api.table``) is the only place where a route exists: Tornado's rules, the
OpenAPI document and the matrix of the authorisation tests are made from it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import msgspec
from tornado.web import RequestHandler

from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.service import Caller, Pool

KIB = 1024
MIB = 1024 * KIB


class Who(StrEnum):
    """Who may call a route at all; what of it they see or may touch, the pool decides."""

    ANYBODY = "anybody"
    CALLER = "caller"  # a user or service that the Hub knows
    OPERATOR = "operator"  # a service of the Hub, or an administrator
    ADMIN = "admin"


class Kind(StrEnum):
    """How request and answer travel."""

    JSON = "application/json"
    YAML = "text/yaml"
    BYTES = "application/octet-stream"
    TEXT = "text/plain"
    CSV = "text/csv"
    EVENTS = "text/event-stream"


class Transport(RequestHandler):
    """A connection that a route may stream to; ``gone`` is set when either side leaves."""

    gone: asyncio.Event


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A route without parameters."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was identified, admitted and decoded.

    Attributes:
        path: The variable parts of the address.
        query: An object of the route's query type; ``body`` of its body type.
        transport: The connection, for routes that stream.
    """

    caller: Caller
    pool: Pool
    identity: Identity
    path: Mapping[str, str]
    query: Any
    body: Any
    transport: Transport


@dataclass(frozen=True, slots=True)
class Answer:
    """What a route says: a value of the contract or bytes, a status, headers."""

    value: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Sink(Protocol):
    """Takes a body that is not kept in memory."""

    async def write(self, data: bytes) -> None:
        """Take bytes."""

    def abort(self) -> None:
        """Forget them; harmless after the end."""


Handle = Callable[[Request], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one address.

    Attributes:
        path: Below ``/api/v1/`` with ``{name}`` for variable parts.
        name: The operation's name in the OpenAPI document.
        summary: One line for the reference.
        takes: Kind of the body, None for no body; ``body`` its type when that is JSON.
        gives: Kind of the answer; ``returns`` its type when that is JSON, None for no content.
        events: For event streams, the type of each event's data by its name.
        statuses: Good statuses and what each says.
        max_body: Most bytes of a body.
        receive: Makes the place for a body that is streamed, from request and size; that place is
            then the request's body.
    """

    method: str
    path: str
    name: str
    summary: str
    who: Who
    handle: Handle
    query: type[msgspec.Struct] = NoQuery
    takes: Kind | None = None
    body: type[Any] | None = None
    gives: Kind = Kind.JSON
    returns: Any = None
    events: Mapping[str, Any] = field(default_factory=dict)
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "Done."})
    max_body: int = 64 * KIB
    receive: Callable[[Request, int], Sink] | None = None


PARTS: Mapping[str, str] = {
    "job": "[a-z0-9]{4,26}",
    "lease": "[a-z0-9]{26}",
    "sha256": "[0-9a-f]{64}",
}
"""What each variable part of an address looks like; anything else does not exist."""


def pattern(path: str) -> str:
    """Return the regular expression of an address.

    >>> pattern("jobs/{job}/why")
    'jobs/(?P<job>[a-z0-9]{4,26})/why'
    """
    return re.sub(r"\{(\w+)\}", lambda part: f"(?P<{part[1]}>{PARTS[part[1]]})", path)
