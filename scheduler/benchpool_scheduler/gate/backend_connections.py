"""Connections to replicas, kept for a moment for the next request."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import dataclass

from tornado.http1connection import HTTP1Connection, HTTP1ConnectionParameters
from tornado.iostream import IOStream, StreamClosedError
from tornado.tcpclient import TCPClient

from benchpool_scheduler.contract.operation import KIB
from benchpool_scheduler.gate.directory import Backend

CONNECT_S = 5.0
KEPT_S = 2.0
"""Maximum idle time of a connection, in seconds; servers keep one open for 5 s and more."""
MOST_KEPT = 32
"""Maximum idle connections per replica."""
PARAMETERS = HTTP1ConnectionParameters(
    chunk_size=64 * KIB, max_header_size=64 * KIB, max_body_size=2**62
)


class ConnectionRefused(Exception):
    """A replica refused a connection, so that nothing of the request reached it."""


@dataclass(slots=True, eq=False)
class BackendConnection:
    """One connection to a replica, for one request at a time.

    Attributes:
        reused: Whether it has carried a request before, so that the replica may just be closing it.
        tires: Time at which its idle time ends.
    """

    backend: Backend
    stream: IOStream
    reused: bool = False
    tires: asyncio.TimerHandle | None = None

    def http(self) -> HTTP1Connection:
        """Return the HTTP connection over this stream, for one request and its answer."""
        return HTTP1Connection(self.stream, True, PARAMETERS)

    def close(self) -> None:
        """Close it; harmless when repeated."""
        self.stream.close()

    def usable(self) -> bool:
        """Return whether an idle connection is open and silent.

        Unexpected bytes would be taken for the next answer.
        """
        if self.stream.closed() or self.stream._read_buffer_size:
            return False
        try:
            self.stream.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False


class BackendConnections:
    """Pool of all idle connections."""

    def __init__(self) -> None:
        self._kept: dict[Backend, list[BackendConnection]] = {}
        self._names = TCPClient()

    async def get(self, backend: Backend, *, fresh: bool = False) -> BackendConnection:
        """Return a connection.

        Args:
            backend: The replica.
            fresh: Whether to open a new one, for a request that must not be lost if the replica is
            just
                closing a kept connection.

        Raises:
            ConnectionRefused: The replica refuses the connection.
        """
        while not fresh and (kept := self._kept.get(backend)):
            one = kept[-1]
            self._take(one)
            if one.usable():
                one.reused = True
                return one
            one.close()
        try:
            async with asyncio.timeout(CONNECT_S):
                stream = await self._connect(backend)
        except (OSError, StreamClosedError, TimeoutError) as failed:
            raise ConnectionRefused(str(failed)) from failed
        stream.set_nodelay(True)
        return BackendConnection(backend, stream)

    def keep(self, connection: BackendConnection) -> None:
        """Keep a connection for the next request, after a complete answer."""
        if not connection.usable():
            connection.close()
            return
        kept = self._kept.setdefault(connection.backend, [])
        kept.append(connection)
        loop = asyncio.get_running_loop()
        connection.tires = loop.call_later(KEPT_S, self._drop, connection)
        connection.stream.set_close_callback(lambda: self._drop(connection))
        if len(kept) > MOST_KEPT:
            self._drop(kept[0])

    def close(self) -> None:
        """Close all idle connections."""
        for kept in list(self._kept.values()):
            for one in list(kept):
                self._drop(one)

    async def _connect(self, backend: Backend) -> IOStream:
        for family in (socket.AF_INET, socket.AF_INET6):
            with contextlib.suppress(OSError):
                socket.inet_pton(family, backend.host)
                break
        else:
            return await self._names.connect(backend.host, backend.port)
        stream = IOStream(socket.socket(family, socket.SOCK_STREAM))
        try:
            return await stream.connect((backend.host, backend.port))
        except BaseException:
            stream.close()
            raise

    def _take(self, connection: BackendConnection) -> None:
        kept = self._kept[connection.backend]
        kept.remove(connection)
        if not kept:
            del self._kept[connection.backend]
        connection.stream.set_close_callback(None)
        if connection.tires is not None:
            connection.tires.cancel()

    def _drop(self, connection: BackendConnection) -> None:
        if connection in self._kept.get(connection.backend, ()):
            self._take(connection)
        connection.close()
