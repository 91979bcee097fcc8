"""The queue of servers that wait for build GPUs, as a value: who waits, since when, who still asks.

A server keeps its place by asking again. One that has not asked for a while is passed over and
keeps the place; one that has not asked for long has left. Every change makes another queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

Request = TypeVar("Request")

Server = tuple[str, str]
"""User and server."""

ABSENT_S = 30.0
"""Who has not asked for this time is passed over, and keeps the place."""

FORGOTTEN_S = 300.0
"""Who has not asked for this time has left; a Hub that restarts needs less."""


@dataclass(frozen=True, slots=True)
class WaitingServer(Generic[Request]):
    """A server in line.

    Attributes:
        id: That of the lease it will get.
        request: What it asked for last.
        since: When it first asked, in epoch seconds; decides its turn. ``asked``: when it last did.
    """

    id: str
    server: Server
    request: Request
    since: float
    asked: float


@dataclass(frozen=True, slots=True)
class BenchQueue(Generic[Request]):
    """Who waits, by server."""

    places: Mapping[Server, WaitingServer[Request]] = field(default_factory=dict)

    def entered(
        self, server: Server, request: Request, *, id: str, since: float | None, now: float
    ) -> BenchQueue[Request]:
        """Return the queue with a place for a server; one that it has is kept.

        Args:
            id: That of a new place.
            since: When the server first asked, where it knows that; None for now.

        >>> queue = BenchQueue().entered(("susan", ""), "2", id="a", since=None, now=10.0)
        >>> queue = queue.entered(("susan", ""), "1", id="b", since=5.0, now=12.0)
        >>> [(it.id, it.request, it.since, it.asked) for it in queue.present(12.0)]
        [('a', '1', 5.0, 12.0)]
        """
        known = self.places.get(server)
        first = now if known is None else known.since
        place = WaitingServer(
            id=id if known is None else known.id,
            server=server,
            request=request,
            since=first if since is None else min(since, first),
            asked=now,
        )
        return replace(self, places={**self.places, server: place})

    def without(self, place: str) -> BenchQueue[Request]:
        """Return the queue without the place that has this id."""
        left = {server: it for server, it in self.places.items() if it.id != place}
        return replace(self, places=left)

    def without_forgotten(self, now: float) -> BenchQueue[Request]:
        """Return the queue without those that have left long ago."""
        left = {server: it for server, it in self.places.items() if now - it.asked <= FORGOTTEN_S}
        return self if len(left) == len(self.places) else replace(self, places=left)

    def present(self, now: float) -> tuple[WaitingServer[Request], ...]:
        """Return who waits and still asks, the next one first.

        >>> queue = BenchQueue().entered(("susan", ""), "2", id="a", since=None, now=0.0)
        >>> len(queue.present(30.0)), len(queue.present(31.0))
        (1, 0)
        """
        here = (it for it in self.places.values() if now - it.asked <= ABSENT_S)
        return tuple(sorted(here, key=lambda it: (it.since, it.id)))
