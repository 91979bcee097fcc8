"""Declaration of API operations; the table is in ``contract.operations``.

An operation is declared once, as a function in a table. Its decorator holds the address, the types
and the required role. Its parameters are those of the clients' method, and its body assigns each
parameter to the path, the query or the body:

>>> class Small:
...     @operation("GET", "jobs/{job}/why", str)
...     def why(self, id_: str) -> Given:
...         '''Ask why a job waits.'''
...         return given(job=id_)
>>> Small.why.summary, Small.why.call("7k2m").path
('Ask why a job waits', 'jobs/7k2m/why')

A sender that inherits the table has each operation as a method of these parameters: a
``PlainSender`` returns the answer, an ``AsyncSender`` awaits it.
"""

from __future__ import annotations

import functools
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload
from urllib.parse import quote

import msgspec

from benchpool_scheduler.contract.forms import Form, PlainVerb
from benchpool_scheduler.contract.serving import SERVICE_NAME

P = ParamSpec("P")
A = TypeVar("A")

KIB = 1024
MIB = 1024 * KIB


class Who(StrEnum):
    """Role that an operation requires. The pool decides on access to single objects."""

    PUBLIC = "public"
    CALLER = "caller"  # a user or service of the Hub
    LEAD = "lead"  # of the project that the body names, or an administrator; the pool decides
    OPERATOR = "operator"  # a service of the Hub, or an administrator
    MONITOR = "monitor"  # a collector of metrics, by a token for this purpose only; or an operator
    NODE = "node"  # only the agent of the node in the address, by a token of its pod
    ADMIN = "admin"


class Media(StrEnum):
    """Media type of a body or an answer."""

    JSON = "application/json"
    YAML = "text/yaml"
    BYTES = "application/octet-stream"
    TEXT = "text/plain"
    CSV = "text/csv"
    EVENTS = "text/event-stream"


class Repeat(StrEnum):
    """Whether a request may be sent again after its answer was lost."""

    HARMLESS = "harmless"
    BY_KEY = "by-key"  # harmless when the body has a key


PARTS: Mapping[str, str] = {
    "job": "[a-z0-9]{4,26}",
    "lease": "[a-z0-9]{26}",
    "node": "[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?",
    "schedule": "[a-z0-9]{4,26}",
    "service": SERVICE_NAME,
    "sha256": "[0-9a-f]{64}",
    "sweep": "[a-z0-9]{4,26}",
}
"""Regular expression of each variable part of an address. Other values are not found."""


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of an operation without parameters in its address."""


Value = str | int | float | bool | datetime | None


@dataclass(frozen=True, slots=True)
class Given:
    """Arguments of a call: parts of the path, the query, and the body or the file that is the body.

    None values of the query are left out. ``takes_s`` is the timeout of this answer in seconds,
    None for the default.
    """

    path: Mapping[str, str]
    query: Mapping[str, Value]
    body: object = None
    content: Path | bytes | None = None
    takes_s: float | None = None


def given(
    body: object = None,
    *,
    query: Mapping[str, Value] | None = None,
    content: Path | bytes | None = None,
    takes_s: float | None = None,
    **path: str,
) -> Given:
    """Return the arguments of a call."""
    return Given(path, query or {}, body, content, takes_s)


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation(Generic[A]):
    """One method of one address.

    Attributes:
        name: Name in the OpenAPI document.
        path: Path below ``/api/v1/``, with ``{name}`` for variable parts.
        summary: One line for the reference.
        takes: Media type of the body, None for no body.
        body: Type of a JSON body.
        gives: Media type of the answer.
        answer: Type of the answer; for event streams, type of the items that are read.
        events: For event streams, type of each event's data by the event's name.
        statuses: Success statuses with their meanings.
        max_body: Maximum size of a body, in bytes.
        takes_s: Timeout of the answer in seconds, None for the default.
        lab: Whether JupyterLab pages may call it through the notebook server.
        tool: Whether ``benchpool mcp`` offers it to language models.
        changes: False for a read-only operation whose method is not GET.
        form: Button on the pages of a job.
        verb: Verb of the command line.
    """

    name: str
    method: str
    path: str
    summary: str
    answer: type[A]
    who: Who = Who.CALLER
    query: type[msgspec.Struct] = NoQuery
    takes: Media | None = None
    body: type[Any] | None = None
    gives: Media = Media.JSON
    events: Mapping[str, Any] = field(default_factory=dict)
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "Done."})
    max_body: int = 64 * KIB
    repeat: Repeat = Repeat.HARMLESS
    takes_s: float | None = None
    lab: bool = False
    tool: bool = False
    changes: bool = True
    form: Form | None = None
    verb: PlainVerb | None = None

    @property
    def audited(self) -> bool:
        """Return whether calls are written to the audit trail: the operation changes something."""
        return self.method != "GET" and self.changes

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names of the variable parts of its path."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def pattern(self) -> str:
        """Return the regular expression of its path."""
        return re.sub(r"\{(\w+)\}", lambda part: f"(?P<{part[1]}>{PARTS[part[1]]})", self.path)

    def ask(self, what: Given) -> Call[A]:
        """Return the request with these arguments.

        Raises:
            TypeError: An argument is not part of the operation.
        """
        unknown = what.query.keys() - set(self.query.__struct_fields__)
        if unknown or what.path.keys() != set(self.parts):
            raise TypeError(f"{self.name} takes no {', '.join(unknown) or dict(what.path)}")
        return Call(self, what)


@dataclass(frozen=True, slots=True)
class Call(Generic[A]):
    """Request: an operation and its arguments."""

    operation: Operation[A]
    given: Given

    def with_query(self, **query: Value) -> Call[A]:
        """Return a copy with other values in the query."""
        return self.operation.ask(replace(self.given, query={**self.given.query, **query}))

    @property
    def path(self) -> str:
        """Return the quoted path below ``/api/v1/``."""
        quoted = {name: quote(value, safe="") for name, value in self.given.path.items()}
        return self.operation.path.format(**quoted)

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """Return the names and values of the query."""
        values = self.given.query.items()
        return tuple((key, _text(value)) for key, value in values if value is not None)

    @property
    def body(self) -> bytes | None:
        """Return the encoded body, or None if there is none or ``given.content`` is the body."""
        match self.operation.takes:
            case Media.JSON:
                return msgspec.json.encode(self.given.body)
            case Media.YAML:
                return str(self.given.body).encode()
        return None

    @property
    def takes_s(self) -> float | None:
        """Return the timeout of the answer in seconds, or None for the default."""
        return self.given.takes_s or self.operation.takes_s

    @property
    def repeatable(self) -> bool:
        """Return whether the request may be sent again after a lost answer."""
        if self.operation.repeat is Repeat.BY_KEY:
            return self.has_key
        return True

    @property
    def has_key(self) -> bool:
        """Return whether it submits a job with a key, or content that is named by its own hash.

        A client that sends a key retries until the request succeeds. For it a delay is better than
        a refusal.
        """
        keyed = getattr(self.given.body, "key", None) is not None
        return keyed or self.operation.path.startswith("objects/")


class PlainSender(ABC):
    """Sender of calls that waits for the answers."""

    @abstractmethod
    def send(self, call: Call[A]) -> A:
        """Send a call and return the answer. Errors: those of ``benchpool_scheduler.errors``."""

    @abstractmethod
    def follow(self, call: Call[A]) -> Iterator[A]:
        """Yield the items of an event stream."""


class AsyncSender(ABC):
    """Sender of calls by coroutines."""

    @abstractmethod
    async def send(self, call: Call[A]) -> A:
        """Send a call and return the answer. Errors: those of ``benchpool_scheduler.errors``."""

    @abstractmethod
    def follow(self, call: Call[A]) -> AsyncIterator[A]:
        """Yield the items of an event stream."""


Fill = Callable[Concatenate[Any, P], Given]
"""Function from a method's parameters to the arguments of a call. Its first parameter is unused."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answered(Operation[A], Generic[P, A]):
    """Operation with a single answer. On a sender it is a method."""

    fill: Fill[P]

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[A]:
        """Return the request for these arguments."""
        return self.ask(self.fill(None, *args, **kwargs))

    @overload
    def __get__(self, at: None, owner: object) -> Self: ...
    @overload
    def __get__(self, at: PlainSender, owner: object) -> Callable[P, A]: ...
    @overload
    def __get__(self, at: AsyncSender, owner: object) -> Callable[P, Coroutine[Any, Any, A]]: ...
    def __get__(self, at: Any, owner: object) -> Any:
        return self if at is None else _method(self, at, at.send)


@dataclass(frozen=True, kw_only=True, eq=False)
class Streamed(Operation[A], Generic[P, A]):
    """Operation with a stream of events. On a sender it is an iterator."""

    fill: Fill[P]

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[A]:
        """Return the request for these arguments."""
        return self.ask(self.fill(None, *args, **kwargs))

    @overload
    def __get__(self, at: None, owner: object) -> Self: ...
    @overload
    def __get__(self, at: PlainSender, owner: object) -> Callable[P, Iterator[A]]: ...
    @overload
    def __get__(self, at: AsyncSender, owner: object) -> Callable[P, AsyncIterator[A]]: ...
    def __get__(self, at: Any, owner: object) -> Any:
        return self if at is None else _method(self, at, at.follow)


def declared(table: type) -> tuple[Operation[Any], ...]:
    """Return all operations of a table, in the order of its bases, then its own."""
    found = (value for one in table.__mro__ for value in vars(one).values())
    return tuple(value for value in found if isinstance(value, Operation))


def operation(
    method: str, path: str, answer: type[A], **facts: Any
) -> Callable[[Fill[P]], Answered[P, A]]:
    """Declare an operation. ``facts`` are further attributes of ``Operation``."""

    def declare(fill: Fill[P]) -> Answered[P, A]:
        return Answered(
            **_declared(fill, facts), method=method, path=path, answer=answer, fill=fill
        )

    return declare


def stream(path: str, item: type[A], **facts: Any) -> Callable[[Fill[P]], Streamed[P, A]]:
    """Declare an event stream. ``item`` is the type that its reader gets."""

    def declare(fill: Fill[P]) -> Streamed[P, A]:
        return Streamed(
            **_declared(fill, facts),
            method="GET",
            path=path,
            answer=item,
            gives=Media.EVENTS,
            fill=fill,
        )

    return declare


def _declared(fill: Callable[..., Given], facts: Mapping[str, Any]) -> dict[str, Any]:
    first = (inspect.getdoc(fill) or "").partition("\n")[0].removesuffix(".")
    body = {"takes": Media.JSON} if "body" in facts else {}
    return {"name": fill.__name__, "summary": first, **body, **facts}


def _method(
    described: Answered[..., Any] | Streamed[..., Any], at: object, pass_on: Callable[..., Any]
) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        return pass_on(described.call(*args, **kwargs))

    return functools.update_wrapper(method, MethodType(described.fill, at))


def _text(value: Value) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)
