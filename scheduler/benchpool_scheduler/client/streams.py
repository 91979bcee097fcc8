"""Server-sent events: parsing, and resuming after a cut without gap or repeat.

Pure: bytes in, events out. The parser splits on line feeds only, because ``str.splitlines`` would
also split inside JSON texts that hold other line separators. Format: WHATWG HTML, section 9.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

from benchpool_scheduler.contract import Job, JobDeleted, LogText, PoolEvent, PoolNow
from benchpool_scheduler.contract.operation import Call
from benchpool_scheduler.contract.operations import Operations

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """Event as sent: the last ID received, its name and its data."""

    id: str
    name: str
    data: bytes


@dataclass(slots=True)
class Parser:
    r"""Parser that turns the bytes of a stream into events.

    >>> parser = Parser()
    >>> parser.feed(b"id: 3\nevent: job\nda")
    []
    >>> parser.feed(b'ta: {"a": 1}\n\n')
    [ServerEvent(id='3', name='job', data=b'{"a": 1}')]
    """

    _rest: bytes = b""
    _id: str = ""
    _name: str = ""
    _data: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Add some bytes and return the events that they complete."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = (self._line(line.removesuffix(b"\r")) for line in lines)
        return [event for event in found if event is not None]

    def _line(self, line: bytes) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"id":
            self._id = value.decode("utf-8", "replace")
        return None

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        if not data:
            return None
        return ServerEvent(self._id, name or "message", b"\n".join(data))


class Followed(Protocol[T]):
    """Stream that can be reopened where it was cut."""

    @property
    def done(self) -> bool:
        """Whether the stream has ended."""

    @property
    def call(self) -> Call[T]:
        """Request that continues from the current position."""

    def opened(self) -> list[T]:
        """Return the items for an opened connection."""

    def take(self, event: ServerEvent) -> list[T]:
        """Return the items for one event."""


def followed(call: Call[T]) -> Followed[T]:
    """Return the stream that a call opens."""
    kinds: Mapping[str, Any] = {
        Operations.follow_log.name: FollowedLog,
        Operations.events.name: FollowedEvents,
    }
    stream: Followed[T] = kinds[call.operation.name](call)
    return stream


@dataclass(slots=True)
class FollowedLog:
    """Log of one worker, from a byte offset to its end."""

    call: Call[LogText]
    done: bool = False

    def opened(self) -> list[LogText]:
        return []

    def take(self, event: ServerEvent) -> list[LogText]:
        if event.name == "end":
            self.done = True
        if event.name != "log":
            return []
        piece = msgspec.json.decode(event.data, type=LogText)
        self.call = self.call.with_query(attempt=piece.attempt, offset=int(event.id), since=None)
        return [piece]


@dataclass(slots=True)
class FollowedEvents:
    """Endless stream of all changes that the caller may see."""

    call: Call[PoolEvent]
    done: bool = False
    after: int | None = None

    def opened(self) -> list[PoolEvent]:
        return [PoolEvent("open")]

    def take(self, event: ServerEvent) -> list[PoolEvent]:
        if event.id.isdecimal():
            self.after = int(event.id)
            self.call = self.call.with_query(after=self.after)
        match event.name:
            case "job":
                job = msgspec.json.decode(event.data, type=Job)
                return [PoolEvent("job", self.after, job, event.data)]
            case "deleted":
                gone = msgspec.json.decode(event.data, type=JobDeleted)
                return [PoolEvent("deleted", self.after, gone, event.data)]
            case "pool":
                now = msgspec.json.decode(event.data, type=PoolNow)
                return [PoolEvent("pool", self.after, now, event.data)]
            case "reset":
                return [PoolEvent("reset", self.after, None, event.data)]
        return []  # an event of a later version
