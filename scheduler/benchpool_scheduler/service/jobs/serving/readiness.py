"""Asks replicas whether they answer, again and again, at a pace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchpool_scheduler.service.process.clock import Clock

FIRST_S, GROWTH, LONGEST_S = 0.1, 1.5, 2.0
"""Pauses between questions to one that does not answer yet: first, growth, longest."""
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
AGAIN_S = 5.0
"""Between questions to one that answers."""
MISSES = 3
"""So often in a row it must not answer before it counts as one that does not."""
ANSWER_S = 5.0
"""Within this time it must answer."""

Pause = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """Where a replica is asked.

    Attributes:
        host: An address, with ``port``; ``path`` is what it is asked for.
        account: Whose program must listen there on this machine; None for anybody's.
    """

    host: str
    port: int
    path: str
    account: int | None = None

    @property
    def url(self) -> str:
        """Its readiness path.

        >>> ReplicaPlace("fd00::7", 8000, "/up").url, ReplicaPlace("10.1.2.3", 8000, "/").url
        ('http://[fd00::7]:8000/up', 'http://10.1.2.3:8000/')
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}{self.path}"


Ask = Callable[[ReplicaPlace], Awaitable[bool]]
"""Asks one replica."""


async def answers(place: ReplicaPlace) -> bool:
    """Tell whether a replica answers 2xx or 3xx, and is whose it must be."""
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
    """Return the account whose program listens on a port of this machine; None for none.

    Source: ``/proc/net/tcp`` and ``tcp6``, whose lines have state 0A for what listens.
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
    """Tell whether what listens on a port is of an account, or of root, which starts containers.

    Another account's program that took the port first must not be given what is for this one.
    """
    return listener(port) in (account, 0)


@dataclass(slots=True)
class Watched:
    """A replica that is asked.

    Attributes:
        since: Since when it answers, epoch seconds; None while it does not.
    """

    place: ReplicaPlace
    task: asyncio.Task[None] | None = None
    since: float | None = None


@dataclass(slots=True)
class ReadinessWatch:
    """Which replicas answer, and since when.

    Attributes:
        changed: Told the job of each replica that answers from now on, or no longer does.
        ask: Asks one. ``pause``: waits between two questions.
    """

    clock: Clock
    changed: Callable[[str], None] = lambda job: None
    ask: Ask = answers
    pause: Pause = asyncio.sleep
    _watched: dict[str, Watched] = field(default_factory=dict)

    def since(self, job: str) -> float | None:
        """Return since when a replica answers, epoch seconds; None while it does not."""
        found = self._watched.get(job)
        return None if found is None else found.since

    def follow(self, running: Mapping[str, ReplicaPlace]) -> None:
        """Ask these replicas and no others, by their jobs; one in another place is another."""
        for job, watched in list(self._watched.items()):
            if running.get(job) != watched.place:
                self._end(self._watched.pop(job))
        for job, place in running.items():
            if job not in self._watched:
                watched = self._watched[job] = Watched(place)
                watched.task = asyncio.create_task(self._look(job, watched))

    async def close(self) -> None:
        """Ask no more."""
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
