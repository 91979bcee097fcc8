"""One address for several servers on the loopback, like a Kubernetes Service for its pods."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

PIECE = 1 << 16


@contextmanager
def balanced(ports: Sequence[int], chance: random.Random) -> Iterator[int]:
    """Forward each connection to a port that accepts it, in random order; yield the own port.

    A connection that no port accepts is closed immediately. An open connection ends with its
    server.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="balanced", daemon=True)
    thread.start()

    async def open_() -> asyncio.Server:
        return await asyncio.start_server(
            lambda reader, writer: _handle(reader, writer, ports, chance), "127.0.0.1", 0
        )

    async def close(server: asyncio.Server) -> None:
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(open_(), loop).result()
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        asyncio.run_coroutine_threadsafe(close(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _handle(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    ports: Sequence[int],
    chance: random.Random,
) -> None:
    try:
        for port in chance.sample(ports, len(ports)):
            with suppress(OSError):
                inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
                ways = (_pump(reader, inner_writer), _pump(inner_reader, writer))
                await asyncio.gather(*ways)
                return
    finally:
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass  # the other end has closed, so close this end too
    finally:
        writer.close()
