"""The wire to the API server: bytes there and back, repeated with patience, guarded.

Calls are repeated on 408, 429, 5xx and lost connections, as long as their ``RetryPolicy`` lasts.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp

from benchpool_scheduler.kube.failures import KubeUnavailable, failure, status_of
from benchpool_scheduler.kube.kube_credentials import KubeCredentials
from benchpool_scheduler.kube.retry import AGAIN, RetryPolicy, asked_s, wait_s

Params = dict[str, str]

AT_ONCE = 32
"""Requests under way together; the API server's own work is the limit before this is."""
REQUEST_S = 30.0
CONNECT_S = 5.0
JSON = "application/json"


class Wire:
    """A pool of connections to one API server; safe for any number of tasks of one loop.

    Every call may raise ``KubeFailure`` (see ``failures``) or ``KubeUnavailable``.

    Args:
        access: From ``credentials.find``; ``connect`` does both.
        patience: For calls that name none.
        at_once: Requests under way together, watches not counted.

    Attributes:
        namespace: The one that kubeconfig or pod names.
        server: The API server's URL.
        guard: Called before each try of each write, and once more when its body is about to go
            out; what it raises ends the call. An election sets it: a process that was stopped and
            goes on must not write what it had begun.
        writes: Number of writes that were answered well, since the start.
    """

    def __init__(
        self,
        access: KubeCredentials,
        *,
        patience: RetryPolicy = RetryPolicy(),  # noqa: B008 (frozen)
        at_once: int = AT_ONCE,
    ) -> None:
        self._access = access
        self._patience = patience
        self._turns = asyncio.Semaphore(at_once)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=access.tls, limit=0, keepalive_timeout=60),
            trust_env=False,
            read_bufsize=2**20,
            headers={"User-Agent": "benchpool", "Accept": JSON},
        )
        self.namespace = access.namespace
        self.server = access.server
        self.guard: Callable[[], None] | None = None
        self.writes = 0

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        form: str = JSON,
        params: Params | None = None,
        patience: RetryPolicy | None = None,
    ) -> bytes:
        """Return the body of a good answer; repeat what may be repeated."""
        patient = patience or self._patience
        begun, tries, renewed = time.monotonic(), 0, False
        while True:
            tries += 1
            asked = None
            try:
                async with self._turns:
                    if self.guard is not None and method != "GET":
                        self.guard()
                    status, answer, asked = await self.exchange(method, path, data, form, params)
            except (aiohttp.ClientError, TimeoutError, OSError) as failed:
                word = f"{type(failed).__name__}: {failed}".rstrip(": ")
            else:
                if status < 300:
                    return answer
                if status == 401 and not renewed:
                    renewed = True  # the token ran out between two looks at its source
                    continue
                if status not in AGAIN:
                    raise failure(status_of(status, answer))
                word = str(failure(status_of(status, answer)))
            spent = time.monotonic() - begun
            wait = wait_s(patient, tries, spent, random.random(), asked)  # noqa: S311
            if wait is None:
                raise KubeUnavailable(
                    f"The API server {self.server} has not done {method} {path} in {spent:.0f} s "
                    f"and {tries} tries ({word}); it is asked again when there is need.",
                    numbers={"seconds": round(spent), "tries": tries},
                )
            await asyncio.sleep(wait)

    async def exchange(
        self, method: str, path: str, data: bytes | None, form: str, params: Params | None
    ) -> tuple[int, bytes, float | None]:
        """Send a request once; return status, answer and the seconds to wait that it names."""
        headers = await self._headers(form if data is not None else None)
        body: bytes | AsyncIterator[bytes] | None = data
        if data is not None and self.guard is not None:
            headers["Content-Length"] = str(len(data))
            body = _guarded(self.guard, data)
        async with self._session.request(
            method,
            self.server + path,
            data=body,
            params=params,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=REQUEST_S, sock_connect=CONNECT_S),
            proxy=self._access.proxy,
            server_hostname=self._access.server_name,
        ) as answer:
            return (
                answer.status,
                await answer.read(),
                asked_s(answer.headers.get("Retry-After")),
            )

    @asynccontextmanager
    async def stream(
        self, path: str, params: Params | None = None, *, silence_s: float | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a body that goes on, e.g. a watch or a followed log; yields what comes as it comes.

        It is tried once. Errors: KubeFailure for another answer than a good one;
        KubeUnavailable when it breaks off, or nothing comes for ``silence_s``.
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_S, sock_read=silence_s or None
        )
        try:
            async with self._session.get(
                self.server + path,
                params=params,
                headers=await self._headers(None),
                timeout=timeout,
                proxy=self._access.proxy,
                server_hostname=self._access.server_name,
            ) as answer:
                if answer.status >= 300:
                    status = status_of(answer.status, await answer.read())
                    if answer.status in AGAIN:
                        raise KubeUnavailable(f"The API server says: {failure(status)}")
                    raise failure(status)
                yield answer.content.iter_any()
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            raise KubeUnavailable(
                f"The connection to the API server {self.server} broke off "
                f"({type(failed).__name__}: {failed}); it is opened again."
            ) from failed

    async def _headers(self, form: str | None) -> dict[str, str]:
        headers = await self._access.headers()
        if form is not None:
            headers["Content-Type"] = form
        return headers


async def _guarded(guard: Callable[[], None], data: bytes) -> AsyncIterator[bytes]:
    """Yield a body when the connection is there; a request without its body has no effect."""
    guard()
    yield data
