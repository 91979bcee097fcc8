"""Admitted requests, their answers, and the binding of handlers to operations.

Operations are defined only in the contract's table. This module binds each one to its handler.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote

from tornado.web import RequestHandler

from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.contract.operation import PARTS, Operation
from benchpool_scheduler.contract.operations import OPERATIONS
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.access import rights


class Transport(RequestHandler):
    """Connection that a route may stream to. ``gone`` is set when either side leaves."""

    gone: asyncio.Event


@dataclass(frozen=True, slots=True)
class Request:
    """Identified, admitted and decoded request.

    Attributes:
        path: Variable parts of the address.
        query: Object of the route's query type. ``body``: of its body type.
        transport: Connection, for routes that stream.
        open_streams: All connections that stream now.
    """

    caller: Caller
    pool: Pool
    identity: Identity
    path: Mapping[str, str]
    query: Any
    body: Any
    transport: Transport
    open_streams: Sized = ()

    @property
    def streams(self) -> int:
        """Number of open event streams."""
        return len(self.open_streams)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a route: a contract value or bytes, a status, and headers."""

    value: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Sink(Protocol):
    """Receiver of a body that is not kept in memory."""

    async def write(self, data: bytes) -> None:
        """Receive a chunk of the body."""

    def abort(self) -> None:
        """Discard the received data. Has no effect after the end."""


Handle = Callable[[Request], Awaitable[Answer]]


Receive = Callable[[Request, int], Sink]
"""Returns the sink of a streamed body. The sink becomes the request's body."""


@dataclass(frozen=True, slots=True)
class Route:
    """Operation and its handler."""

    operation: Operation[Any]
    handle: Handle
    receive: Receive | None = None

    @property
    def of_history(self) -> bool:
        """Whether the operation needs the complete job history."""
        first, name = self.operation.path.partition("/")[0], self.operation.name
        return first in {"jobs", "history", "whatif", "report"} and name != "submit"


def bound(
    handlers: Mapping[Operation[Any], Handle], receivers: Mapping[Operation[Any], Receive]
) -> tuple[Route, ...]:
    """Return all operations with their handlers, in the order of the table.

    Raises:
        LookupError: An operation has no handler, or a handler has no operation.
    """
    unbound = [one.name for one in OPERATIONS if one not in handlers]
    unknown = [one.name for one in (*handlers, *receivers) if one not in OPERATIONS]
    if unbound or unknown:
        raise LookupError(f"operations without handler: {unbound}; not in the table: {unknown}")
    return tuple(Route(one, handlers[one], receivers.get(one)) for one in OPERATIONS)


_NAMING: Mapping[str, tuple[str, Callable[[str], NotFound]]] = {
    "jobs": ("job", rights.no_job),
    "leases": ("lease", lambda name: NotFound(
        f"There is no bench {name[:40]!r}: the pool's page shows the IDs.")),
    "benches": ("lease", lambda name: NotFound(
        f"There is no bench {name[:40]!r}: `benchpool benches` lists IDs.")),
    "nodes": ("node", lambda name: NotFound(
        f"The pool has no machine {name[:40]!r}: `benchpool nodes` lists them.")),
}  # fmt: skip
"""By first part of an address: the name of the second part, and its error."""


def nothing_at(path: str) -> NotFound:
    """Return the error for an unknown address. It hints at job names used instead of IDs.

    >>> print(nothing_at("/services/benchpool/api/v1/jobs/my-fit/cancel"))
    There is no job with the id 'my-fit' that you may see; `benchpool jobs --all` lists ids.
    >>> print(nothing_at("/services/benchpool/api/v1/jobs/zz3k/log"))
    The address does not exist. See openapi.json for all addresses.
    >>> print(nothing_at("/services/benchpool/api/v1/leases/susan/ask-back"))
    There is no bench 'susan': the pool's page shows the IDs.
    >>> print(nothing_at("/services/benchpool/api/v1/benches/susan/keep"))
    There is no bench 'susan': `benchpool benches` lists IDs.
    >>> print(nothing_at("/services/benchpool/api/v1/nodes/lab%201/drain"))
    The pool has no machine 'lab 1': `benchpool nodes` lists them.
    """
    named = re.search(rf"/api/v1/({'|'.join(_NAMING)})/([^/]+)", path)
    if named is not None:
        part, not_found = _NAMING[named[1]]
        name = unquote(named[2])
        if not re.fullmatch(PARTS[part], name):
            return not_found(name)
    return NotFound("The address does not exist. See openapi.json for all addresses.")
