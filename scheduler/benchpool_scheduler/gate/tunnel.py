"""Join two connections into one.

Bytes are forwarded unchanged in both directions, so that every frame of a websocket, its extensions
and its close codes arrive as they were sent. Nothing is read before it can be forwarded.
"""

from __future__ import annotations

import asyncio
import socket

from tornado.iostream import IOStream, StreamClosedError

from benchpool_scheduler.contract.operation import KIB

PIECE = 64 * KIB


async def join(one: IOStream, other: IOStream) -> None:
    """Forward bytes until either side ends, then close both."""
    for stream in (one, other):
        stream.set_nodelay(True)
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    ways = {
        asyncio.ensure_future(_pour(one, other)),
        asyncio.ensure_future(_pour(other, one)),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        one.close()
        other.close()
        await asyncio.gather(*ways)


async def _pour(source: IOStream, drain: IOStream) -> None:
    try:
        while True:
            await drain.write(await source.read_bytes(PIECE, partial=True))
    except StreamClosedError:
        return
