"""Server-sent events: reading them, and going on after a cut without gap or repeat.

Pure: bytes in, events out. The parser splits on line feeds only, because ``str.splitlines`` would
also split inside JSON texts that hold other line separators. Format: WHATWG HTML, section 9.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeVar

import msgspec

from benchpool_scheduler.client import calls
from benchpool_scheduler.client.calls import Call
from benchpool_scheduler.contract import Job, JobDeleted, LogText, PoolNow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event as sent: its id (the last one said), its name, its data."""

    id: str
    name: str
    data: bytes


@dataclass(slots=True)
class Parser:
    r"""Turns the bytes of a stream into events.

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
        """Take some bytes, return the events that they complete."""
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
    """A stream that can be opened again where it was cut."""

    @property
    def done(self) -> bool:
        """True when nothing more will come."""

    def call(self) -> Call[bytes]:
        """Return the request that goes on from here."""

    def opened(self) -> list[T]:
        """Return what the reader gets when a connection stands."""

    def take(self, event: ServerEvent) -> list[T]:
        """Return what the reader gets for one event."""


@dataclass(slots=True)
class FollowedLog:
    """The log of one worker from a byte offset to its end."""

    job: str
    attempt: int | None
    worker: int
    offset: int
    since: datetime | None = None
    done: bool = False

    def call(self) -> Call[bytes]:
        return calls.follow_log(
            self.job,
            attempt=self.attempt,
            worker=self.worker,
            offset=self.offset,
            since=self.since,
        )

    def opened(self) -> list[LogText]:
        return []

    def take(self, event: ServerEvent) -> list[LogText]:
        if event.name == "end":
            self.done = True
        if event.name != "log":
            return []
        piece = msgspec.json.decode(event.data, type=LogText)
        self.attempt, self.offset, self.since = piece.attempt, int(event.id), None
        return [piece]


class Event(msgspec.Struct, frozen=True):
    """One change, as its reader gets it.

    Attributes:
        kind: ``open`` when a connection stands (read anew what you show, once), ``job`` with the
            job as it is now, ``pool`` when the pool's state changed, ``deleted`` when a job's
            record is gone, ``reset`` when too much was missed: read anew what you show.
        seq: Sequence number; None for ``open``.
        data: The job, the deletion, or the pool; ``raw``: its JSON as it came.
    """

    kind: Literal["open", "job", "pool", "deleted", "reset"]
    seq: int | None = None
    data: Job | JobDeleted | PoolNow | None = None
    raw: bytes = b""


@dataclass(slots=True)
class FollowedEvents:
    """All changes that the caller may see, without an end."""

    after: int | None = None
    done: bool = False

    def call(self) -> Call[bytes]:
        return calls.events(self.after)

    def opened(self) -> list[Event]:
        return [Event("open")]

    def take(self, event: ServerEvent) -> list[Event]:
        self.after = int(event.id) if event.id.isdecimal() else self.after
        match event.name:
            case "job":
                job = msgspec.json.decode(event.data, type=Job)
                return [Event("job", self.after, job, event.data)]
            case "deleted":
                gone = msgspec.json.decode(event.data, type=JobDeleted)
                return [Event("deleted", self.after, gone, event.data)]
            case "pool":
                now = msgspec.json.decode(event.data, type=PoolNow)
                return [Event("pool", self.after, now, event.data)]
            case "reset":
                return [Event("reset", self.after, None, event.data)]
        return []  # a kind of a later version
