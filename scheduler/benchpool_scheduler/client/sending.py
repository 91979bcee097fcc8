"""What both clients share about sending: addresses, headers, time limits, when to try again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import httpx

from benchpool_scheduler.client import answers
from benchpool_scheduler.client.credentials import Credentials
from benchpool_scheduler.contract.errors import SAFE_MODE
from benchpool_scheduler.contract.operation import Call
from benchpool_scheduler.errors import BenchpoolError, Unavailable
from benchpool_scheduler.phrases import duration

TIMEOUT = httpx.Timeout(30.0, connect=5.0)
ANSWER_S = 9.0
"""How long an answer is waited for before somebody is told: a submission is answered within 8 s, so
a service that is silent for longer was stopped, or is at its bounds. What is sent again goes by a
new connection, which a cluster leads to another replica."""

PIECE = 1 << 20
"""Files are read and sent in pieces of so many bytes."""

SILENT_S = 30.0
"""How long the second try of what has no key waits for its answer."""

SILENCE_S = 45.0
"""A stream without even a heartbeat (every 15 s) for this long is cut and opened again."""

STREAM_PATIENCE_S = 60.0
"""For how long a stream that stood once is opened again; a scheduler restarts in a few seconds."""

KEYED_PATIENCE_S = 120.0
"""For how long what carries a key is sent again by default: Hub and scheduler restart in less."""

SAID_AFTER_S = 1.0
"""A wait that lasts longer is told to whoever looks."""


def pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield what a file holds, up to the bytes that were announced: it may grow meanwhile.

    >>> from io import BytesIO
    >>> list(pieces(BytesIO(b"loss 0.5, loss 0.4"), 8))
    [b'loss 0.5']
    """
    while size and (piece := file.read(min(PIECE, size))):
        size -= len(piece)
        yield piece


def client_options(credentials: Credentials, timeout: httpx.Timeout) -> dict[str, Any]:
    """Return the options of an httpx client for this service.

    Redirects are not followed: the token goes to this address only. A proxy of the environment
    never sees traffic of this machine with itself.
    """
    at = urlsplit(credentials.url)
    return {
        "base_url": f"{credentials.url}/api/v1/",
        "headers": {"Authorization": f"token {credentials.token}", "Accept": "application/json"},
        "timeout": timeout,
        "follow_redirects": False,
        "trust_env": at.hostname not in answers.LOOPBACK,
        # Loading the certificates takes longer than most calls; plain HTTP has no use for them.
        "verify": at.scheme == "https",
    }


def request_options(call: Call[Any], silent: bool = False) -> dict[str, Any]:
    """Return the options of one request but for its content.

    Args:
        silent: It was sent already and not answered.
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
    """Return our error for one of the connection; ``call`` is what was sent."""
    if isinstance(failed, httpx.ReadTimeout):
        return answers.silent(url, call)
    cause = "it took too long" if isinstance(failed, httpx.TimeoutException) else _cause(failed)
    return answers.not_reachable(url, cause)


def may_repeat(call: Call[Any], failed: BenchpoolError) -> bool:
    """Say whether sending again can help and cannot harm.

    A page of the Hub or its proxy is no answer of benchpool: while these restart they send some.
    """
    passing = isinstance(failed, Unavailable) and failed.code != SAFE_MODE
    return call.repeatable and (passing or failed.code == answers.NOT_BENCHPOOL)


Tell = Callable[[str], object]
"""Is told once that a call waits."""


@dataclass(frozen=True, slots=True)
class Patience:
    """For how long a service that is away is tried again.

    Attributes:
        usual_s: For what may be repeated.
        keyed_s: At least this long for what carries a key.
        tell: Is told when a wait begins to be noticed.
        silent: What has no key, and may be repeated, is sent once more to a service that took it
            and does not answer, and is waited for longer then.
    """

    usual_s: float = 0.0
    keyed_s: float = KEYED_PATIENCE_S
    tell: Tell | None = None
    silent: bool = True

    def tries(self, call: Call[Any]) -> Tries:
        """Return the tries of one call; the first one is due now."""
        return Tries(self, max(self.usual_s, self.keyed_s) if call.has_key else self.usual_s)


class Tries:
    """The tries of one call, until its patience is over.

    Attributes:
        silent: The last try was not answered.
    """

    def __init__(
        self, patience: Patience, most_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.silent = False
        self._tell = patience.tell
        self._once_more = patience.silent
        self._most_s = most_s
        self._clock = clock
        self._begun = clock()
        self._pauses = pauses()

    def pause_after(self, call: Call[Any], failed: BenchpoolError) -> float:
        """Return the seconds until the next try; raise what failed when it was the last."""
        pause, now = next(self._pauses), self._clock()
        self.silent = failed.code == answers.SILENT
        once_more = self.silent and self._once_more and not call.has_key
        over = now + pause > self._begun + self._most_s and not once_more
        if over or not may_repeat(call, failed):
            raise failed
        if self._tell is not None and now - self._begun > SAID_AFTER_S:
            short = failed.code in (answers.SILENT, answers.NOT_BENCHPOOL)
            cause = failed.message.split(": ")[0] if short else failed.message
            cause = cause.split(": start it with")[0]
            most_s = max(self._most_s, SILENT_S) if once_more else self._most_s
            self._tell(f"{cause}; trying again for up to {duration(most_s)}.")
            self._tell = None
        self._once_more = self._once_more and not self.silent
        return pause


def pauses() -> Iterator[float]:
    """Yield the seconds between tries: quick at first, then every 2 s."""
    pause = 0.1
    while True:
        yield pause
        pause = min(2.0, pause * 2)


class Reconnecting:
    """When a stream is opened again, and when that is given up.

    The first connection has the caller's patience; one that stood has at least a minute. Only
    events make the pauses short again: a service that accepts and closes at once is not hammered.
    """

    def __init__(self, patience_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._lost_at: float | None = None
        self._pauses = pauses()

    def opened(self) -> None:
        """Note that the connection stands."""
        self._patience_s = max(self._patience_s, STREAM_PATIENCE_S)
        self._lost_at = None

    def received(self) -> None:
        """Note that an event came."""
        self._pauses = pauses()

    def pause(self) -> float:
        """Return the seconds until the next try."""
        return next(self._pauses)

    def lost(self, failed: Unavailable) -> None:
        """Note that the connection broke or could not be made; raise when it is enough."""
        now = self._clock()
        self._lost_at = now if self._lost_at is None else self._lost_at
        if now - self._lost_at >= self._patience_s:
            raise failed


def _cause(failed: httpx.HTTPError) -> str:
    text = str(failed).strip()
    return text[:200] if text else type(failed).__name__
