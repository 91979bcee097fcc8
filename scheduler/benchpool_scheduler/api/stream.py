"""Server-sent events: connections that listen to the feed, or relay a source of their own.

After 15 s without events a comment keeps proxies from closing the connection. Every few seconds the
caller is checked again, and the stream ends if the result differs (logged out, other rights). The
client then reconnects and resumes after its last event ID. A client that does not read is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tornado.iostream import StreamClosedError

from benchpool_scheduler.api.routing import Request, Transport
from benchpool_scheduler.errors import BenchpoolError, InvalidInput, Unavailable
from benchpool_scheduler.service import FeedEvent

STREAMS_AT_ONCE = 100
"""Number of open streams above which callers are checked less often."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds: heartbeat, check of the caller, timeout for a slow reader."""

    heartbeat_s: float = 15.0
    recheck_s: float = 4.0
    slow_s: float = 60.0

    def recheck_of(self, streams: int) -> float:
        """Return the seconds between two checks of a caller, for this number of open streams.

        The Hub gets at most 25 requests a second.

        >>> Timing().recheck_of(100), Timing().recheck_of(500)
        (4.0, 20.0)
        """
        return max(self.recheck_s, streams * self.recheck_s / STREAMS_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Frame:
    """Event to send. ``data`` is JSON without line feeds."""

    id: int
    name: str
    data: bytes

    def encoded(self) -> bytes:
        r"""Return the bytes of the event.

        >>> Frame(7, "job", b"{}").encoded()
        b'id: 7\nevent: job\ndata: {}\n\n'
        """
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.id, self.name.encode(), self.data)


HEARTBEAT = b": still here\n\n"


def resume_from(request: Request, given: int | None) -> int | None:
    """Return where a client resumes: after its last event ID, or at the parameter.

    Raises:
        InvalidInput: The header is not a number.
    """
    last = request.transport.request.headers.get("Last-Event-ID")
    if last is None:
        return given
    if not last.isdecimal() or len(last) > 18:
        raise InvalidInput(f"Last-Event-ID is {last[:40]}; it must be a whole number.")
    return int(last)


def encoded(frames: Iterable[Frame]) -> bytes:
    """Return the bytes of several events."""
    return b"".join([frame.encoded() for frame in frames])


class Outlet:
    """Connection that listens to the feed. Writes are sent immediately and not awaited.

    Args:
        encode: Returns the bytes of a batch of events.

    Attributes:
        written: Time of the last write, in monotonic seconds.
    """

    def __init__(
        self, transport: Transport, encode: Callable[[Sequence[FeedEvent]], bytes]
    ) -> None:
        self._transport = transport
        self._encode = encode
        self._flushing: asyncio.Future[None] | None = None
        self._then: Callable[[], None] | None = None
        self.written = time.monotonic()

    @property
    def free(self) -> bool:
        """Whether all written data has been sent."""
        return self._flushing is None

    def ready(self, then: Callable[[], None]) -> bool:
        """Return whether the connection can take more. If not, ``then`` is called when it can."""
        if self._flushing is not None:
            self._then = then
        return self._flushing is None

    def take(self, piece: Sequence[FeedEvent]) -> None:
        """Write a batch of events."""
        self.write(self._encode(piece))

    def write(self, data: bytes) -> None:
        """Write bytes. Call it only while the connection is free."""
        self.written = time.monotonic()
        self._transport.write(data)
        flushing = self._transport.flush()
        if not flushing.done():
            self._flushing = flushing
            flushing.add_done_callback(self._flushed)
        elif flushing.exception() is not None:
            self.end()

    def end(self) -> None:
        """End the stream."""
        self._transport.gone.set()

    def _flushed(self, flushing: asyncio.Future[None]) -> None:
        self._flushing = None
        if flushing.cancelled() or flushing.exception() is not None:
            self.end()
        if self._then is not None:
            then, self._then = self._then, None
            then()


async def hold(request: Request, outlet: Outlet, timing: Timing) -> None:
    """Keep a connection to the feed open until either side leaves.

    Nothing is awaited before the answer begins, so a client with an open stream misses no event.
    """
    transport, checked = request.transport, time.monotonic()
    _announce(transport)
    outlet.write(HEARTBEAT)
    while not transport.gone.is_set():
        recheck_s = timing.recheck_of(request.streams)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(timing.heartbeat_s, recheck_s)):
                await transport.gone.wait()
        now = time.monotonic()
        if now - checked >= recheck_s:
            checked = now
            if not await _same_caller(request):
                break
        if not outlet.free and now - outlet.written >= timing.slow_s:
            break
        if outlet.free and now - outlet.written >= timing.heartbeat_s:
            outlet.write(HEARTBEAT)
    if not transport._finished:
        transport.finish()


async def relay(request: Request, pieces: AsyncIterator[bytes], timing: Timing) -> None:
    """Send batches of encoded events until the source ends or either side leaves.

    The first batch is requested before the answer begins, so a client with an open stream misses no
    later event.
    """
    transport, checked = request.transport, time.monotonic()
    upcoming = asyncio.ensure_future(anext(pieces, None))
    gone = asyncio.ensure_future(transport.gone.wait())
    try:
        await asyncio.sleep(0)
        if upcoming.done() and (failed := upcoming.exception()) is not None:
            raise failed
        await _begin(request, timing)
        written = time.monotonic()
        while not gone.done():
            recheck_s = timing.recheck_of(request.streams)
            await asyncio.wait(
                {upcoming, gone},
                timeout=min(timing.heartbeat_s, recheck_s),
                return_when="FIRST_COMPLETED",
            )
            now = time.monotonic()
            if now - checked >= recheck_s:
                checked = now
                if not await _same_caller(request):
                    return
            if not upcoming.done():
                if now - written >= timing.heartbeat_s:
                    await _write(request, HEARTBEAT, timing)
                    written = now
                continue
            written = now
            piece = upcoming.result()
            if piece is None:
                return
            await _write(request, piece, timing)
            upcoming = asyncio.ensure_future(anext(pieces, None))
    except (StreamClosedError, TimeoutError):
        return
    finally:
        await _end(upcoming, gone)
        if transport._headers_written and not transport._finished:
            transport.finish()


async def _begin(request: Request, timing: Timing) -> None:
    _announce(request.transport)
    await _write(request, HEARTBEAT, timing)


def _announce(transport: Transport) -> None:
    transport.set_header("Content-Type", "text/event-stream; charset=utf-8")
    transport.set_header("X-Accel-Buffering", "no")


async def _write(request: Request, data: bytes, timing: Timing) -> None:
    request.transport.write(data)
    await asyncio.wait_for(request.transport.flush(), timing.slow_s)


async def _same_caller(request: Request) -> bool:
    try:
        now = await request.identity.authenticate(request.transport, fresh=True)
    except Unavailable:
        return True  # the Hub is down: check again later; ending would cut browsers' streams
    except BenchpoolError:
        return False
    return now == request.caller


async def _end(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
