"""Rate and concurrency limits per caller, so that one caller cannot slow others down."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from benchpool_scheduler.contract.errors import RATE_LIMITED
from benchpool_scheduler.errors import TooMany
from benchpool_scheduler.service import Caller

A_PIECE = 100
"""Number of list entries that count as one more request."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Rate limit per user: ``per_s`` on average, ``burst`` at once. Services have no limit."""

    per_s: float = 200.0
    burst: float = 1000.0


class Limits:
    """Counters of requests (one token bucket per user) and of open streams.

    >>> limits = Limits(Rate(per_s=1, burst=2), clock=lambda: 0.0)
    >>> susan = Caller("susan")
    >>> limits.request(susan), limits.request(susan)
    (None, None)
    >>> limits.request(susan)
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.TooMany: The limit is 1 requests a second for susan; ... Wait 1 s.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._streams: dict[tuple[str, str], int] = {}
        self._lists: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def request(self, caller: Caller) -> None:
        """Count a request. Errors: TooMany."""
        if caller.kind == "service":
            return
        left = self._left(caller)
        if left < 1:
            wait_s = math.ceil((1 - left) / self._rate.per_s)
            raise TooMany(
                f"The limit is {self._rate.per_s:g} requests a second for {caller.name}; every "
                f"{A_PIECE} entries of a list count as one more. Wait {wait_s} s.",
                code=RATE_LIMITED,
                numbers={"per_s": self._rate.per_s, "retry_after_s": wait_s},
            )
        self._take(caller, 1)

    def answered(self, caller: Caller, entries: int) -> None:
        """Count the entries of an answered list. The cost is known only afterwards.

        >>> limits = Limits(Rate(per_s=1, burst=2), clock=lambda: 0.0)
        >>> susan = Caller("susan")
        >>> limits.request(susan), limits.answered(susan, 1000)
        (None, None)
        >>> limits.request(susan)
        Traceback (most recent call last):
        ...
        benchpool_scheduler.errors.TooMany: ... Wait 10 s.
        """
        if caller.kind != "service" and entries >= A_PIECE:
            self._take(caller, entries / A_PIECE)

    @asynccontextmanager
    async def listing(self, caller: Caller) -> AsyncIterator[None]:
        """Run one list request of a caller at a time.

        After each list, the caller's next one waits as long as the list took, at most 1 s. Requests
        of other callers run meanwhile.
        """
        if caller.kind == "service":
            yield
            return
        turn = self._lists.setdefault(caller.name, asyncio.Lock())
        await turn.acquire()
        began = self._clock()
        try:
            yield
        finally:
            took_s = min(1.0, max(0.0, self._clock() - began))
            asyncio.get_running_loop().call_later(took_s, turn.release)

    def _left(self, caller: Caller) -> float:
        rate, now = self._rate, self._clock()
        left, at = self._buckets.get(caller.name, (rate.burst, now))
        return min(rate.burst, left + (now - at) * rate.per_s)

    def _take(self, caller: Caller, requests: float) -> None:
        left = self._left(caller)
        if len(self._buckets) >= 10_000:
            self._buckets.clear()
        self._buckets[caller.name] = (left - requests, self._clock())

    @contextmanager
    def stream(self, caller: Caller, most: int) -> Iterator[None]:
        """Hold one open stream of the caller. The limit per user is ``most``. Errors: TooMany."""
        key = (caller.kind, caller.name)
        count = self._streams.get(key, 0)
        if count >= most and caller.kind == "user":
            raise TooMany(
                f"{caller.name} has {count} open event streams; the limit is {most}. Close some "
                "pages, or end programs that follow jobs.",
                code="too-many-streams",
                numbers={"limit": most},
            )
        self._streams[key] = count + 1
        try:
            yield
        finally:
            self._streams[key] -= 1
            if not self._streams[key]:
                del self._streams[key]
