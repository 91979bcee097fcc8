"""HTTP requests to the API server: bytes in and out, with retries and a guard.

Calls are retried on 408, 429, 5xx and lost connections, within their ``RetryPolicy``.
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
"""Most concurrent requests; the API server limits the throughput before that."""
REQUEST_S = 30.0
CONNECT_S = 5.0
JSON = "application/json"


class Wire:
    """A pool of connections to one API server; safe for any number of tasks of one loop.

    Every call may raise ``KubeFailure`` (see ``failures``) or ``KubeUnavailable``.

    Args:
        access: From ``kube_credentials.find``; ``connect`` does both.
        patience: Default retry policy of calls.
        at_once: Most concurrent requests, without watches.

    Attributes:
        namespace: The namespace of the kubeconfig or the pod.
        server: The API server's URL.
        guard: Called before each try of each write, and again before its body is sent. An
            exception ends the call. An election sets it, so that a suspended process cannot
            complete a write after it lost the lead.
        writes: Number of successful writes since the start.
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
        """Return the body of a successful answer; retry if possible."""
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
                    renewed = True  # the token expired between two reads of its source
                    continue
                if status not in AGAIN:
                    raise failure(status_of(status, answer))
                word = str(failure(status_of(status, answer)))
            spent = time.monotonic() - begun
            wait = wait_s(patient, tries, spent, random.random(), asked)  # noqa: S311
            if wait is None:
                raise KubeUnavailable(
                    f"The API server {self.server} did not complete {method} {path} within "
                    f"{spent:.0f} s and {tries} tries ({word}). The request is repeated when "
                    "needed.",
                    numbers={"seconds": round(spent), "tries": tries},
                )
            await asyncio.sleep(wait)

    async def exchange(
        self, method: str, path: str, data: bytes | None, form: str, params: Params | None
    ) -> tuple[int, bytes, float | None]:
        """Send a request once; return status, answer and the delay in ``Retry-After``."""
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
        """Open a streamed body, such as a watch or a followed log; its chunks are yielded at once.

        It is tried once. Raises KubeFailure for an error answer, and KubeUnavailable if the
        connection breaks or is silent for ``silence_s`` seconds.
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
                        raise KubeUnavailable(f"The API server reports: {failure(status)}")
                    raise failure(status)
                yield answer.content.iter_any()
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            raise KubeUnavailable(
                f"The connection to the API server {self.server} was lost "
                f"({type(failed).__name__}: {failed}). It is opened again."
            ) from failed

    async def _headers(self, form: str | None) -> dict[str, str]:
        headers = await self._access.headers()
        if form is not None:
            headers["Content-Type"] = form
        return headers


async def _guarded(guard: Callable[[], None], data: bytes) -> AsyncIterator[bytes]:
    """Yield a body once the connection is open; a request without its body has no effect."""
    guard()
    yield data
