"""Looks up names in threads of their own, so that a slow name server holds up nobody else.

A look-up cannot be interrupted: whoever asks gives up, and the thread goes on until the system
answers. So there is one at a time for each person, and the threads end with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Collection

MOST = 64
"""Look-ups at the same time, of all people."""

LookUp = Callable[[str, int], Collection[str]]
"""Returns the addresses of a host; blocks. Errors: OSError."""


def by_system(host: str, port: int) -> Collection[str]:
    """Ask the system. Errors: OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(str(address[0]) for *_, address in found)


class NameLookups:
    """Look-ups of one event loop."""

    def __init__(self, look_up: LookUp = by_system) -> None:
        self._look_up = look_up
        self._all = asyncio.Semaphore(MOST)
        self._of: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def resolve(self, person: str, host: str, port: int) -> Collection[str]:
        """Return the addresses of a host, after the person's earlier look-ups. Errors: OSError."""
        lock = self._of[person]
        await lock.acquire()
        try:
            await self._all.acquire()
        except BaseException:
            lock.release()
            raise
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Collection[str]] = loop.create_future()

        def ended(result: Collection[str] | Exception) -> None:
            lock.release()
            self._all.release()
            if found.cancelled():
                return
            if isinstance(result, Exception):
                found.set_exception(result)
            else:
                found.set_result(result)

        def run() -> None:
            result: Collection[str] | Exception
            try:
                result = self._look_up(host, port)
            except Exception as failed:
                result = failed
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(ended, result)

        threading.Thread(target=run, name="name-lookup", daemon=True).start()
        return await found
