"""Periodic readiness probes of replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchpool_scheduler.service.process.clock import Clock

FIRST_S, GROWTH, LONGEST_S = 0.1, 1.5, 2.0
"""Intervals between probes of a replica that is not ready: first and growth factor, and maximum, in
seconds.
"""
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
AGAIN_S = 5.0
"""Interval between probes of a ready replica, in seconds."""
MISSES = 3
"""Number of consecutive failures after which a replica is no longer ready."""
ANSWER_S = 5.0
"""Timeout for an answer, in seconds."""

Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """Address of a replica for readiness probes.

    Attributes:
        host: An address, with ``port``; ``path`` is the requested path.
        account: Account that must own the listening program on this machine; None for any.
    """

    host: str
    port: int
    path: str
    account: int | None = None

    @property
    def url(self) -> str:
        """URL of its readiness path.

        >>> ReplicaPlace("fd00::7", 8000, "/up").url, ReplicaPlace("10.1.2.3", 8000, "/").url
        ('http://[fd00::7]:8000/up', 'http://10.1.2.3:8000/')
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self.path}"


Ask = Callable[[ReplicaPlace], Awaitable[bool]]
"""Probe of one replica."""


async def answers(place: ReplicaPlace) -> bool:
    """Return whether a replica answers 2xx or 3xx, and belongs to the required account."""
    account = place.account
    if account is not None and not await asyncio.to_thread(is_of, place.port, account):
        return False
    try:
        async with (
            httpx.AsyncClient(timeout=ANSWER_S, trust_env=False) as client,
            client.stream("GET", place.url) as answer,
        ):
            return 200 <= answer.status_code < 400
    except (httpx.HTTPError, httpx.InvalidURL, OSError):
        return False


def listener(port: int, tables: Sequence[Path] = TABLES) -> int | None:
    """Return the account that listens on a port of this machine, or None.

    Source: ``/proc/net/tcp`` and ``tcp6``, whose lines have state 0A for listening sockets.
    """
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                return int(words[7])
    return None


def is_of(port: int, account: int) -> bool:
    """Return whether the listener on a port belongs to an account, or to root, which starts
    containers.

    A program of another account that took the port first must not get this account's requests.
    """
    return listener(port) in (account, 0)


@dataclass(slots=True)
class Watched:
    """A probed replica.

    Attributes:
        since: Time at which it became ready, in epoch seconds; None while it is not.
    """

    place: ReplicaPlace
    task: asyncio.Task[None] | None = None
    since: float | None = None


@dataclass(slots=True)
class ReadinessWatch:
    """Readiness of replicas, and since when.

    Attributes:
        changed: Called with the job of a replica whose readiness has changed.
        ask: Probes a replica. ``pause``: waits between two probes.
    """

    clock: Clock
    changed: Callable[[str], None] = lambda job: None
    ask: Ask = answers
    pause: Pause = asyncio.sleep
    _watched: dict[str, Watched] = field(default_factory=dict)

    def since(self, job: str) -> float | None:
        """Return when a replica became ready, in epoch seconds, or None while it is not."""
        found = self._watched.get(job)
        return None if found is None else found.since

    def follow(self, running: Mapping[str, ReplicaPlace]) -> None:
        """Probe exactly these replicas, by job; a replica with a new address counts as a new
        one.
        """
        for job, watched in list(self._watched.items()):
            if running.get(job) != watched.place:
                self._end(self._watched.pop(job))
        for job, place in running.items():
            if job not in self._watched:
                watched = self._watched[job] = Watched(place)
                watched.task = asyncio.create_task(self._look(job, watched))

    async def close(self) -> None:
        """Stop all probes."""
        tasks = [it.task for it in self._watched.values() if it.task is not None]
        self.follow({})
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    def _end(watched: Watched) -> None:
        if watched.task is not None:
            watched.task.cancel()

    async def _look(self, job: str, watched: Watched) -> None:
        pause_s, missed = FIRST_S, 0
        while True:
            if await self.ask(watched.place):
                missed = 0
                if watched.since is None:
                    watched.since = self.clock.now()
                    self.changed(job)
                pause_s = FIRST_S
                await self.pause(AGAIN_S)
                continue
            missed += 1
            if watched.since is not None and missed >= MISSES:
                watched.since = None
                self.changed(job)
            await self.pause(pause_s)
            pause_s = min(pause_s * GROWTH, LONGEST_S)
