"""Cache of objects that follows the API server: list, then watch, until the reader stops.

    reflector = Reflector(connection, PODS, labels="benchpool.io/role=worker", as_=Pod, keep=trim)
    async for change in reflector.changes():
        match change:
            case Appeared(item=pod): ...
            case Changed(item=pod, before=known): ...
            case Vanished(item=pod): ...
            case Listed(): ...        # reflector.items is complete; comes after each list

``items`` changes just before the change is yielded, in the same task: there is no queue between.
One consumer. ``changes`` never ends by itself. It raises permanent errors only, such as
KubeForbidden, KubeNotFound (no such kind) and KubeInvalid.

These conditions are handled:

- A version that is too old (410) leads to another list; objects missing in it have vanished.
- An interrupted list has no effect.
- An object of the same name and another UID is another object.
- A watch that is silent beyond its own time limit is half open, and is opened again.
- Bookmarks keep the version recent.
- After an outage it waits with jitter, so that many readers do not return at once.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from benchpool_scheduler.kube.connection import Connection
from benchpool_scheduler.kube.failures import KubeGone, KubeStatus, KubeUnavailable, failure
from benchpool_scheduler.kube.kinds import Kind
from benchpool_scheduler.kube.retry import AGAIN
from benchpool_scheduler.kube.wire import Params

log = logging.getLogger(__name__)

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace (empty for cluster-wide objects) and name."""

WATCH_S = 45
"""Approximate duration of a watch; a watch that is silent for longer is closed, in seconds."""
SLACK_S = 10.0
FIRST_S, LONGEST_S = 0.2, 30.0
TURN = 200
"""Number of consecutive events after which other tasks may run."""


class Metadata(Struct, frozen=True, rename="camel"):
    """The fields of ``metadata`` that every cache needs."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Head(Struct):
    metadata: Metadata = Metadata()


class _WatchEvent(Struct):
    type: str
    object: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Appeared(Generic[T]):
    """An object that is new to this reader."""

    key: Key
    item: T


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """An object has a new version."""

    key: Key
    item: T
    before: T


@dataclass(frozen=True, slots=True)
class Vanished(Generic[T]):
    """An object is gone; ``item`` is its last state."""

    key: Key
    item: T


@dataclass(frozen=True, slots=True)
class Listed:
    """A list is complete; all changes that it contained were yielded before."""


Change = Appeared[T] | Changed[T] | Vanished[T] | Listed


@dataclass(slots=True)
class _Entry(Generic[T]):
    uid: str
    version: str
    item: T | None


class Reflector(Generic[T]):
    """A cache of the objects of one kind.

    Args:
        namespace: None for all namespaces. ``labels``, ``fields``: selectors.
        as_: Type into which an object is decoded: a msgspec ``Struct`` (other fields are skipped)
            or ``dict``.
        keep: Reduces an object to the part that is cached; None omits it from ``items``. Without
            ``keep`` the decoded object is cached.

    Attributes:
        items: The cached objects, by namespace and name.
        last_contact: Time of the server's last answer or event (``time.monotonic``); 0 before.
    """

    def __init__(
        self,
        connection: Connection,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        as_: Any = dict[str, Any],
        keep: Callable[[Any], T | None] | None = None,
    ) -> None:
        self._connection = connection
        self._kind = kind
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(as_)
        self._keep = keep
        self._entries: dict[Key, _Entry[T]] = {}
        self._items: dict[Key, T] = {}
        self._version: str | None = None
        self.items: Mapping[Key, T] = MappingProxyType(self._items)
        self.last_contact = 0.0

    @property
    def listed(self) -> bool:
        """Whether a complete list was read, and no new list is due."""
        return self._version is not None

    def list_again(self) -> None:
        """List everything again next, for example after a long outage."""
        self._version = None

    async def changes(self) -> AsyncGenerator[Change[T], None]:
        """Yield all objects, then their changes; see the module.

        Close the generator after the last read, so that its watch ends at once.
        """
        failures = 0
        while True:
            try:
                if self._version is None:
                    async with aclosing(self._list()) as listed:
                        async for change in listed:
                            yield change
                async with aclosing(self._watch()) as watched:
                    async for change in watched:
                        failures = 0
                        yield change
                failures = 0
            except KubeGone:
                log.info("the versions of %s are too old; listing again", self._kind.plural)
                self.list_again()
                failures += 1
            except KubeUnavailable as away:
                failures += 1
                if failures > 1:
                    log.warning("%s: %s", self._kind.plural, away)
                if failures > 3:
                    # A server that was restored from a backup rejects versions that it never had.
                    self._version = None
            if failures:
                await asyncio.sleep(_pause_s(failures))

    # ------------------------------------------------------------------ list

    async def _list(self) -> AsyncGenerator[Change[T], None]:
        found: list[msgspec.Raw] = []
        version = ""
        pages = self._connection.pages(self._kind, self._namespace, self._labels, self._fields)
        async for page, of_page in pages:
            found += page
            version = of_page
            self.last_contact = time.monotonic()
        present: set[Key] = set()
        for number, raw in enumerate(found):
            key, changes = self._take(raw)
            present.add(key)
            for change in changes:
                yield change
            if number % TURN == TURN - 1:
                await asyncio.sleep(0)
        for key in [key for key in self._entries if key not in present]:
            for change in self._drop(key):
                yield change
        # Set only now: a reader that stops before this starts with a list again.
        self._version = version
        yield Listed()

    # ------------------------------------------------------------------ watch

    async def _watch(self) -> AsyncGenerator[Change[T], None]:
        limit_s = WATCH_S + random.randrange(10)  # noqa: S311
        path = self._kind.path(self._namespace)
        async with self._connection.stream(
            path, self._params(limit_s), silence_s=limit_s + SLACK_S
        ) as chunks:
            number = 0
            async for line in _lines(chunks):
                self.last_contact = time.monotonic()
                for change in self._apply(msgspec.json.decode(line, type=_WatchEvent)):
                    yield change
                number += 1
                if number % TURN == 0:
                    await asyncio.sleep(0)

    def _params(self, limit_s: int) -> Params:
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version or "",
            "timeoutSeconds": str(limit_s),
        }
        if self._labels:
            params["labelSelector"] = self._labels
        if self._fields:
            params["fieldSelector"] = self._fields
        return params

    def _apply(self, event: _WatchEvent) -> Iterator[Change[T]]:
        match event.type:
            case "BOOKMARK":
                head = msgspec.json.decode(event.object, type=_Head)
                self._version = head.metadata.resource_version
            case "ERROR":
                status = msgspec.json.decode(event.object, type=KubeStatus)
                if status.code in AGAIN:
                    raise KubeUnavailable(f"The API server ends a watch: {status.message}")
                raise failure(status)
            case "DELETED":
                head = msgspec.json.decode(event.object, type=_Head)
                yield from self._drop(_key(head.metadata), head.metadata.uid)
                self._version = head.metadata.resource_version
            case _:
                _, changes = self._take(event.object)
                yield from changes
                head = msgspec.json.decode(event.object, type=_Head)
                self._version = head.metadata.resource_version

    # ------------------------------------------------------------------ the cache

    def _take(self, raw: msgspec.Raw) -> tuple[Key, list[Change[T]]]:
        about = msgspec.json.decode(raw, type=_Head).metadata
        key = _key(about)
        known = self._entries.get(key)
        if known is not None and known.uid == about.uid and known.version == about.resource_version:
            return key, []
        changes: list[Change[T]] = []
        if known is not None and known.uid != about.uid:
            changes += self._drop(key)
            known = None
        decoded = self._decoder.decode(raw)
        item: T | None = decoded if self._keep is None else self._keep(decoded)
        before = None if known is None else known.item
        self._entries[key] = _Entry(about.uid, about.resource_version, item)
        if item is not None:
            self._items[key] = item
            changes.append(Appeared(key, item) if before is None else Changed(key, item, before))
        elif before is not None:
            del self._items[key]
            changes.append(Vanished(key, before))
        return key, changes

    def _drop(self, key: Key, uid: str | None = None) -> list[Change[T]]:
        known = self._entries.get(key)
        if known is None or uid not in (None, known.uid):
            return []
        del self._entries[key]
        self._items.pop(key, None)
        return [] if known.item is None else [Vanished(key, known.item)]


def _key(about: Metadata) -> Key:
    return about.namespace, about.name


def _pause_s(failures: int) -> float:
    """Return the seconds to wait after this number of consecutive failures (full jitter)."""
    bound: float = min(LONGEST_S, FIRST_S * 2.0 ** (failures - 1))
    return bound * random.random()  # noqa: S311


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream; a line may be longer than any chunk."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
