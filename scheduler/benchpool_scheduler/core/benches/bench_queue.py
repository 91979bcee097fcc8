"""Immutable queue of the servers that wait for build GPUs.

A server keeps its queue position by polling. After ``ABSENT_S`` without a poll it is skipped but
keeps its position. After ``FORGOTTEN_S`` it leaves the queue. Every change returns a new queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

Request = TypeVar("Request")

Server = tuple[str, str]
"""User name and server name."""

ABSENT_S = 30.0
"""A server that has not polled for this long is skipped but keeps its position, in seconds."""

FORGOTTEN_S = 300.0
"""A server that has not polled for this long leaves the queue, in seconds. A Hub restarts
faster.
"""


@dataclass(frozen=True, slots=True)
class WaitingServer(Generic[Request]):
    """A server in the queue.

    Attributes:
        id: ID of the lease that it will get.
        request: Its last request.
        since: Time of its first request, in epoch seconds. It decides the position.
        asked: Time of its last request, in epoch seconds.
    """

    id: str
    server: Server
    request: Request
    since: float
    asked: float


@dataclass(frozen=True, slots=True)
class BenchQueue(Generic[Request]):
    """Queue of waiting servers, by server."""

    places: Mapping[Server, WaitingServer[Request]] = field(default_factory=dict)

    def entered(
        self, server: Server, request: Request, *, id: str, since: float | None, now: float
    ) -> BenchQueue[Request]:
        """Return the queue with the server in it. A server that is already queued keeps its ID.

        Args:
            id: ID of a new entry.
            since: Time of the server's first request, or None for now. The earlier known time
            counts.

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
        """Return the queue without the entry that has this ID."""
        left = {server: it for server, it in self.places.items() if it.id != place}
        return replace(self, places=left)

    def without_forgotten(self, now: float) -> BenchQueue[Request]:
        """Return the queue without the servers that have not polled for ``FORGOTTEN_S`` seconds."""
        left = {server: it for server, it in self.places.items() if now - it.asked <= FORGOTTEN_S}
        return self if len(left) == len(self.places) else replace(self, places=left)

    def present(self, now: float) -> tuple[WaitingServer[Request], ...]:
        """Return the waiting servers that still poll, in queue order.

        >>> queue = BenchQueue().entered(("susan", ""), "2", id="a", since=None, now=0.0)
        >>> len(queue.present(30.0)), len(queue.present(31.0))
        (1, 0)
        """
        here = (it for it in self.places.values() if now - it.asked <= ABSENT_S)
        return tuple(sorted(here, key=lambda it: (it.since, it.id)))
