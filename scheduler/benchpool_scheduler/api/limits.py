"""Bounds on what one caller may ask at once (a flood of one must not slow the others)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchpool_scheduler.errors import TooMany
from benchpool_scheduler.service import Caller


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests of one user: ``per_s`` on average, ``burst`` at once. Services have no bound."""

    per_s: float = 200.0
    burst: float = 1000.0


class Limits:
    """Counts requests (a token bucket for each user) and open streams.

    >>> limits = Limits(Rate(per_s=1, burst=2), clock=lambda: 0.0)
    >>> susan = Caller("susan")
    >>> limits.request(susan), limits.request(susan)
    (None, None)
    >>> limits.request(susan)
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.TooMany: More than 1 requests a second of susan: wait 1 s.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._streams: dict[tuple[str, str], int] = {}

    def request(self, caller: Caller) -> None:
        """Count a request. Raises TooMany."""
        if caller.kind == "service":
            return
        rate, now = self._rate, self._clock()
        left, at = self._buckets.get(caller.name, (rate.burst, now))
        left = min(rate.burst, left + (now - at) * rate.per_s)
        if left < 1:
            raise TooMany(
                f"More than {rate.per_s:g} requests a second of {caller.name}: wait 1 s.",
                code="too-many-requests",
                numbers={"per_s": rate.per_s},
            )
        if len(self._buckets) >= 10_000:
            self._buckets.clear()
        self._buckets[caller.name] = (left - 1, now)

    @contextmanager
    def stream(self, caller: Caller, most: int) -> Iterator[None]:
        """Hold one of the caller's open streams, of which a user has ``most``. Raises TooMany."""
        key = (caller.kind, caller.name)
        count = self._streams.get(key, 0)
        if count >= most and caller.kind == "user":
            raise TooMany(
                f"{caller.name} has {count} open event streams, the limit is "
                f"{most}: close some pages.",
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
