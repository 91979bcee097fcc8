"""Look up host names in separate threads, so that a slow name server delays no other user.

A lookup cannot be interrupted. A caller that gives up leaves its thread running until the system
answers. So each user has at most one lookup at a time, and the threads end with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Collection

MOST = 64
"""Maximum number of concurrent lookups, of all users."""

LookUp = Callable[[str, int], Collection[str]]
"""Function that returns the addresses of a host; blocking. Errors: OSError."""


def by_system(host: str, port: int) -> Collection[str]:
    """Look up a host with the system's resolver. Errors: OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(str(address[0]) for *_, address in found)


class NameLookups:
    """Lookups of one event loop."""

    def __init__(self, look_up: LookUp = by_system) -> None:
        self._look_up = look_up
        self._all = asyncio.Semaphore(MOST)
        self._of: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def resolve(self, person: str, host: str, port: int) -> Collection[str]:
        """Return the addresses of a host, after the user's earlier lookups. Errors: OSError."""
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
            with contextlib.suppress(RuntimeError):  # the loop is closed and has no waiter
                loop.call_soon_threadsafe(ended, result)

        threading.Thread(target=run, name="name-lookup", daemon=True).start()
        return await found
