"""Connection of the server to the scheduler: opened on first use, reopened when the pool moves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx

from benchpool_scheduler.client import AsyncClient, Credentials, discover, sending
from benchpool_scheduler.errors import NotAuthenticated, Unavailable

T = TypeVar("T")


class PoolAccess:
    """Provider of one client, and one plain HTTP connection for forwarded requests."""

    def __init__(self, find: Callable[[], Credentials] | None = None) -> None:
        self._find = find or (lambda: discover(os.environ))
        self._client: AsyncClient | None = None
        self._http: httpx.AsyncClient | None = None

    @property
    def client(self) -> AsyncClient:
        """Client of the pool. Raises Unavailable or NotAuthenticated if no pool is known."""
        if self._client is None:
            # Users wait before a dialog: errors are shown at once, and the user retries.
            self._client = AsyncClient(self._find(), keyed_patience_s=0.0)
        return self._client

    @property
    def http(self) -> httpx.AsyncClient:
        """Connection for forwarding, with the server's token."""
        if self._http is None:
            options = sending.client_options(self._find(), sending.TIMEOUT)
            # Each open page holds streams open.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=10)
            self._http = httpx.AsyncClient(**options, limits=limits)
        return self._http

    async def ask(self, question: Callable[[AsyncClient], Awaitable[T]], within_s: float) -> T:
        """Send one request to the pool and return the answer.

        Raises:
            Unavailable: No answer in time, or the pool is unreachable.
            NotAuthenticated: The token is not valid.
        """
        try:
            return await asyncio.wait_for(question(self.client), within_s)
        except TimeoutError:
            raise Unavailable(
                f"The training pool did not answer within {within_s:g} s. Try again, or ask an "
                "administrator whether it runs.",
                code="not-reachable",
                numbers={"seconds": within_s},
            ) from None
        except (Unavailable, NotAuthenticated):
            await self.forget()
            raise

    async def forget(self) -> None:
        """Drop the connections: address or token may have changed, as when the pool moved."""
        client, http, self._client, self._http = self._client, self._http, None, None
        closing: list[Any] = [each.close() for each in (client,) if each is not None]
        # A forwarded stream may still use the other one; its reader closes it.
        if http is not None and not http.is_closed:
            closing.append(_close_when_idle(http))
        await asyncio.gather(*closing)


async def _close_when_idle(http: httpx.AsyncClient) -> None:
    asyncio.get_running_loop().call_later(
        sending.SILENCE_S, lambda: asyncio.ensure_future(http.aclose())
    )
