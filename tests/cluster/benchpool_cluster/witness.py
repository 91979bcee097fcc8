"""Record of everything that the API server reports of a collection.

Later questions of a test ("was it ever paused?", "did two attempts ever run at once?") are then
answered by the API server's history and not by chance polls. After an outage of the API server, the
next list shows the changes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from benchpool_cluster.access import Access
from benchpool_cluster.processes import NotReady

Object = dict[str, Any]
WATCH_S = 5
AGAIN_S = 0.5


class Witness:
    """All versions of all objects of one collection, oldest first.

    Attributes:
        seen: Each version; a deleted object is listed again with ``gone``.
    """

    def __init__(self, access: Access, path: str) -> None:
        self.seen: list[Object] = []
        self._known: dict[str, Object] = {}
        self._access, self._path = access, path
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def versions(self, name: str) -> list[Object]:
        """Return all versions of the objects of a name."""
        with self._changed:
            return [one for one in self.seen if one["metadata"]["name"] == name]

    def course(self, name: str, value_of: Callable[[Object], Any]) -> list[Any]:
        """Return the values of a function over an object's versions, without repeats."""
        found: list[Any] = []
        for one in self.versions(name):
            value = value_of(one)
            if not found or found[-1] != value:
                found.append(value)
        return found

    def wait(self, holds: Callable[[Object], bool], what: str, seconds: float = 60) -> Object:
        """Wait until some version of some object meets the condition, and return it."""
        with self._changed:
            found: list[Object] = []

            def look() -> bool:
                found[:] = [one for one in self.seen if holds(one)][:1]
                return bool(found)

            if not self._changed.wait_for(look, seconds):
                last = {one["metadata"]["name"]: one.get("status") for one in self.seen}
                raise NotReady(f"{what} was not seen in {seconds:g} s; last: {json.dumps(last)}")
            return found[0]

    def start(self) -> None:
        """Start to record, beginning with the existing objects."""
        self._thread.start()

    def stop(self) -> None:
        """Stop recording."""
        self._over.set()
        self._thread.join(WATCH_S + 5)

    def _look(self) -> None:
        while not self._over.is_set():
            try:
                with self._access.client() as client:
                    self._follow(client, self._list(client))
            except (httpx.HTTPError, json.JSONDecodeError, KeyError):
                self._over.wait(AGAIN_S)

    def _list(self, client: httpx.Client) -> str:
        listing = client.get(self._path).raise_for_status().json()
        there = {one["metadata"]["uid"] for one in listing["items"]}
        for uid in set(self._known) - there:
            self._add(self._known[uid], gone=True)
        for one in listing["items"]:
            self._add(one)
        return str(listing["metadata"]["resourceVersion"])

    def _follow(self, client: httpx.Client, version: str) -> None:
        while not self._over.is_set():
            asked = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(WATCH_S)}
            with client.stream("GET", self._path, params=asked) as answer:
                answer.raise_for_status()
                for line in answer.iter_lines():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._add(event["object"], gone=event["type"] == "DELETED")

    def _add(self, one: Object, gone: bool = False) -> None:
        uid = one["metadata"]["uid"]
        with self._changed:
            known = self._known.get(uid)
            if gone:
                self._known.pop(uid, None)
                self.seen.append(one | {"gone": True})
            elif (
                known is None
                or known["metadata"]["resourceVersion"] != one["metadata"]["resourceVersion"]
            ):
                self._known[uid] = one
                self.seen.append(one)
            self._changed.notify_all()


@contextmanager
def witness(access: Access, path: str) -> Iterator[Witness]:
    """Yield a running record of a collection."""
    one = Witness(access, path)
    one.start()
    try:
        yield one
    finally:
        one.stop()
