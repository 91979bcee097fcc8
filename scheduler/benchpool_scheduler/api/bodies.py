"""Limits for request bodies in transfer: number, size, speed and lifetime.

A body in memory counts with its announced size from the admission of its request until the request
has ended. There is a limit per user and one for all users, so that unfinished requests cannot fill
the memory. Senders that are too slow are cut off.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from benchpool_scheduler.contract.operation import KIB, MIB
from benchpool_scheduler.errors import BenchpoolError, TooLarge, TooMany, TooSlow
from benchpool_scheduler.service.process.memory import give_back_memory

RETRY_S = 5
MANY_BYTES = 8 * MIB
MANY_BROKEN = 500
TIDY_AFTER_S = 10.0
"""Delay before freed memory is returned to the system, in seconds."""


@dataclass(frozen=True, slots=True)
class BodyBounds:
    """Limits for bodies in transfer, and their minimum speed.

    Attributes:
        user_requests: Requests with a body per user. ``all_requests``: for all users together.
        user_bytes: Bytes of bodies in memory per user. ``all_bytes``: for all users together.
        least_per_s: Minimum bytes per second of a body, measured over ``patience_s``.
    """

    user_requests: int = 256
    user_bytes: int = 64 * MIB
    all_requests: int = 1024
    all_bytes: int = 256 * MIB
    patience_s: float = 20.0
    least_per_s: int = 16 * KIB

    def longest_s(self, size: int) -> float:
        """Return the timeout for a body of this size, in seconds."""
        return self.patience_s + size / self.least_per_s + 1


class Bodies:
    """All bodies that are in transfer or being answered.

    Attributes:
        requests: Number of admitted requests. ``bytes``: bytes of bodies in memory.
        lingering: Number of refused requests whose connection stays open for a short time, so that
            the sender can read the refusal.

    >>> bodies = Bodies(BodyBounds(user_requests=1))
    >>> first = bodies.admit("susan", 10)
    >>> bodies.admit("susan", 10)
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.TooMany: susan has 1 requests with a body in transfer; the \
limit is 1. Try again in 5 s.
    >>> first.let_go()
    >>> bodies.requests
    0
    """

    def __init__(self, bounds: BodyBounds | None = None) -> None:
        self.bounds = bounds or BodyBounds()
        self.requests = 0
        self.lingering = 0
        self.bytes = 0
        self._most_bytes = 0
        self._broken = 0
        self._requests_of: Counter[str] = Counter()
        self._bytes_of: Counter[str] = Counter()

    def admit(self, who: str, size: int) -> Body:
        """Admit a request whose body takes ``size`` bytes of memory. Errors: TooMany."""
        bounds, of = self.bounds, self._requests_of[who]
        self._broken += 1  # until its body is complete
        if of >= bounds.user_requests:
            raise _too_many(f"{who} has {of} requests with a body", bounds.user_requests)
        if self.requests >= bounds.all_requests:
            raise _too_many(
                f"All users have {self.requests} requests with a body", bounds.all_requests
            )
        self.requests += 1
        self._requests_of[who] += 1
        body = Body(self, who)
        try:
            body.grow(size)
        except TooMany:
            body.let_go()
            raise
        return body

    def take(self, who: str, size: int) -> None:
        """Count ``size`` bytes of memory for a user. Errors: TooMany."""
        bounds, of = self.bounds, self._bytes_of[who] + size
        if of > bounds.user_bytes:
            raise _too_many(f"With this request {who} has bodies of {of} bytes", bounds.user_bytes)
        if self.bytes + size > bounds.all_bytes:
            raise _too_many(
                f"With this request all users have bodies of {self.bytes + size} bytes",
                bounds.all_bytes,
            )
        self.bytes += size
        self._most_bytes = max(self._most_bytes, self.bytes)
        self._bytes_of[who] += size

    def end(self, who: str, size: int) -> None:
        """Remove a request and its bytes from the counts."""
        self.requests -= 1
        self.bytes -= size
        for counter, much in ((self._requests_of, 1), (self._bytes_of, size)):
            counter[who] -= much
            if not counter[who]:
                del counter[who]
        if not self.requests and (self._most_bytes >= MANY_BYTES or self._broken >= MANY_BROKEN):
            asyncio.get_running_loop().call_later(
                TIDY_AFTER_S, give_back_memory, self._broken >= MANY_BROKEN
            )
            self._most_bytes = self._broken = 0

    def came(self) -> None:
        """Record that a body has been received completely."""
        self._broken = max(0, self._broken - 1)


class Body:
    """One request body: its received bytes, its counted memory and its timeout."""

    def __init__(self, bodies: Bodies, who: str) -> None:
        self._bodies = bodies
        self._who = who
        self._counted = 0
        self.received = 0
        self._data = bytearray()
        self._seen = 0
        self._watch: asyncio.TimerHandle | None = None
        self._gone = False

    def grow(self, size: int) -> None:
        """Count at least ``size`` bytes of memory for this body. Errors: TooMany."""
        if size > self._counted:
            self._bodies.take(self._who, size - self._counted)
            self._counted = size

    def watch(self, slow: Callable[[BenchpoolError], None]) -> None:
        """Call ``slow`` with a refusal when the body arrives too slowly."""
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(self._bodies.bounds.patience_s, self._look, slow)

    def passed(self, size: int) -> None:
        """Count received bytes that are stored elsewhere."""
        self.received += size

    def add(self, chunk: bytes) -> None:
        """Store received bytes. Errors: TooMany."""
        self.grow(len(self._data) + len(chunk))
        self.received += len(chunk)
        self._data += chunk

    def whole(self) -> bytes:
        """Return the complete body and release its buffer."""
        self._unwatch()
        self._bodies.came()
        data, self._data = bytes(self._data), bytearray()
        return data

    def let_go(self) -> None:
        """Release the body and its counts. Repeated calls do nothing."""
        self._unwatch()
        self._data = bytearray()
        if not self._gone:
            self._gone = True
            self._bodies.end(self._who, self._counted)

    def _look(self, slow: Callable[[BenchpoolError], None]) -> None:
        bounds, came = self._bodies.bounds, self.received - self._seen
        if came < bounds.least_per_s * bounds.patience_s:
            self._watch = None
            slow(_too_slow(came, bounds))
            return
        self._seen = self.received
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(bounds.patience_s, self._look, slow)

    def _unwatch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None


def too_large(size: int, limit: int) -> TooLarge:
    """Return the refusal of a body of ``size`` bytes."""
    return TooLarge(
        f"The body has {size} bytes; the limit is {limit}. Send less.",
        code="body-too-large",
        numbers={"bytes": size, "limit": limit},
    )


def _too_many(what: str, limit: int) -> TooMany:
    return TooMany(
        f"{what} in transfer; the limit is {limit}. Try again in {RETRY_S} s.",
        code="too-many-bodies",
        numbers={"limit": limit, "retry_after_s": RETRY_S},
    )


def _too_slow(came: int, bounds: BodyBounds) -> TooSlow:
    return TooSlow(
        f"The body is incomplete: {came} bytes were received in {bounds.patience_s:g} s, and the "
        f"minimum is {bounds.least_per_s} bytes a second. Send it again over a faster connection.",
        numbers={
            "bytes": came,
            "seconds": bounds.patience_s,
            "limit": bounds.least_per_s,
            "retry_after_s": RETRY_S,
        },
    )
