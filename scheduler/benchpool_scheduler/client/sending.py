"""Sending, as shared by both clients: addresses, headers, timeouts and retries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import httpx

from benchpool_scheduler.client import answers
from benchpool_scheduler.client.credentials import Credentials
from benchpool_scheduler.contract.errors import RATE_LIMITED, SAFE_MODE
from benchpool_scheduler.contract.operation import Call
from benchpool_scheduler.errors import BenchpoolError, Unavailable
from benchpool_scheduler.phrases import duration

TIMEOUT = httpx.Timeout(30.0, connect=5.0)
ANSWER_S = 9.0
"""Read timeout of a request, in seconds.

A submission is answered within 8 s, so a service that takes longer is stopped or overloaded. A
retry uses a new connection, which a cluster may route to another replica.
"""

PIECE = 1 << 20
"""Size of the chunks in which files are read and sent, in bytes."""

SILENT_S = 30.0
"""Read timeout of the retry of a request without a key, in seconds."""

SILENCE_S = 45.0
"""Read timeout of a stream, in seconds. Heartbeats come every 15 s. Then it is reopened."""

STREAM_PATIENCE_S = 60.0
"""Minimum retry timeout of a stream after its first connection, in seconds."""

KEYED_PATIENCE_S = 120.0
"""Default retry timeout of requests with a key, in seconds. Hub and scheduler restart faster."""

REPORT_AFTER_S = 1.0
"""Time after which a wait is reported to the user, in seconds."""


def pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the content of a file, up to the announced size, because the file may grow meanwhile.

    >>> from io import BytesIO
    >>> list(pieces(BytesIO(b"loss 0.5, loss 0.4"), 8))
    [b'loss 0.5']
    """
    while size and (piece := file.read(min(PIECE, size))):
        size -= len(piece)
        yield piece


def client_options(credentials: Credentials, timeout: httpx.Timeout) -> dict[str, Any]:
    """Return the options of an httpx client for this service.

    Redirects are not followed, so the token goes to this address only. Local traffic never uses a
    proxy from the environment.
    """
    at = urlsplit(credentials.url)
    return {
        "base_url": f"{credentials.url}/api/v1/",
        "headers": {"Authorization": f"token {credentials.token}", "Accept": "application/json"},
        "timeout": timeout,
        "follow_redirects": False,
        "trust_env": at.hostname not in answers.LOOPBACK,
        # Loading certificates takes longer than most calls, and plain HTTP does not need them.
        "verify": at.scheme == "https",
    }


def request_options(call: Call[Any], silent: bool = False) -> dict[str, Any]:
    """Return the options of one request, except its content.

    Args:
        silent: Whether the request was sent before and not answered.
    """
    takes = call.operation.takes
    headers = {} if takes is None else {"Content-Type": takes.value}
    options: dict[str, Any] = {"params": list(call.query), "headers": headers}
    if call.takes_s is not None:
        options["timeout"] = httpx.Timeout(call.takes_s, connect=5.0)
    elif call.given.content is None:
        read_s = SILENT_S if silent and not call.has_key else ANSWER_S
        options["timeout"] = httpx.Timeout(30.0, connect=5.0, read=read_s)
    return options


def stream_options(call: Call[Any]) -> dict[str, Any]:
    """Return the options of a request that opens an event stream."""
    return {
        "params": list(call.query),
        "headers": {"Accept": "text/event-stream"},
        "timeout": httpx.Timeout(SILENCE_S, connect=5.0),
    }


def translated(failed: httpx.HTTPError, url: str, call: Call[Any] | None = None) -> BenchpoolError:
    """Return the benchpool error for a connection error. ``call``: the request that failed."""
    if isinstance(failed, httpx.ReadTimeout):
        return answers.silent(url, call)
    cause = "timeout" if isinstance(failed, httpx.TimeoutException) else _cause(failed)
    return answers.not_reachable(url, cause)


def may_repeat(call: Call[Any], failed: BenchpoolError) -> bool:
    """Return whether a retry can help and is safe.

    A page of the Hub or its proxy counts as no answer: they send pages while they restart.
    """
    passing = isinstance(failed, Unavailable) and failed.code != SAFE_MODE
    return call.repeatable and (passing or failed.code == answers.NOT_BENCHPOOL)


RATE_PATIENCE_S = 30.0
"""Retry timeout of requests that the rate limit rejects, in seconds."""

OnWait = Callable[[str], object]
"""Called once when a call waits."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Retry policy while a service is down.

    Attributes:
        usual_s: Retry timeout of repeatable requests, in seconds.
        keyed_s: Minimum retry timeout of requests with a key, in seconds.
        on_wait: Called when a wait becomes noticeable.
        silent: Whether an unanswered repeatable request without a key is sent again, once and with
            a longer timeout.
    """

    usual_s: float = 0.0
    keyed_s: float = KEYED_PATIENCE_S
    on_wait: OnWait | None = None
    silent: bool = True

    def tries(self, call: Call[Any]) -> Tries:
        """Return the retry state of one call. Its first try is due now."""
        return Tries(self, max(self.usual_s, self.keyed_s) if call.has_key else self.usual_s)


class Tries:
    """Retry state of one call.

    Attributes:
        silent: Whether the last try was not answered.
    """

    def __init__(
        self, patience: Patience, most_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.silent = False
        self._on_wait = patience.on_wait
        self._once_more = patience.silent
        self._most_s = most_s
        self._clock = clock
        self._begun = clock()
        self._pauses = pauses()

    def pause_after(self, call: Call[Any], failed: BenchpoolError) -> float:
        """Return the seconds until the next try. Raise ``failed`` if no try is left."""
        pause, now = next(self._pauses), self._clock()
        if failed.code == RATE_LIMITED:
            pause = max(pause, float(failed.numbers.get("retry_after_s") or 0))
            if now + pause <= self._begun + RATE_PATIENCE_S:
                return pause
        self.silent = failed.code == answers.SILENT
        once_more = self.silent and self._once_more and not call.has_key
        over = now + pause > self._begun + self._most_s and not once_more
        if over or not may_repeat(call, failed):
            raise failed
        if self._on_wait is not None and now - self._begun > REPORT_AFTER_S:
            cause = failed.message.split(". ")[0].removesuffix(".")
            most_s = max(self._most_s, SILENT_S) if once_more else self._most_s
            self._on_wait(f"{cause}; trying again for up to {duration(most_s)}.")
            self._on_wait = None
        self._once_more = self._once_more and not self.silent
        return pause


def pauses() -> Iterator[float]:
    """Yield the seconds between tries: short at first, then 2 s."""
    pause = 0.1
    while True:
        yield pause
        pause = min(2.0, pause * 2)


class Reconnecting:
    """Retry policy for a stream.

    The first connection has the caller's timeout, and later ones at least a minute. Only received
    events reset the pauses, so that a service that closes connections immediately is not
    overloaded.
    """

    def __init__(self, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._lost_at: float | None = None
        self._pauses = pauses()

    def opened(self) -> None:
        """Record that the connection is open."""
        self._patience_s = max(self._patience_s, STREAM_PATIENCE_S)
        self._lost_at = None

    def received(self) -> None:
        """Record that an event arrived."""
        self._pauses = pauses()

    def pause(self) -> float:
        """Return the seconds until the next try."""
        return next(self._pauses)

    def lost(self, failed: Unavailable) -> None:
        """Record a lost or failed connection. Raise ``failed`` after the retry timeout."""
        now = self._clock()
        self._lost_at = now if self._lost_at is None else self._lost_at
        if now - self._lost_at >= self._patience_s:
            raise failed


def _cause(failed: httpx.HTTPError) -> str:
    text = str(failed).strip()
    return text[:200] if text else type(failed).__name__
