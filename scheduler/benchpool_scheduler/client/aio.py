"""``AsyncClient``: the operations as coroutines for services, with the methods of ``Client``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import httpx

from benchpool_scheduler.client import answers, other_versions, sending
from benchpool_scheduler.client.credentials import Credentials
from benchpool_scheduler.client.streams import Followed, Parser, followed
from benchpool_scheduler.contract import ENDED, Job
from benchpool_scheduler.contract.operation import AsyncSender, Call
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import BenchpoolError, Unavailable

T = TypeVar("T")


class AsyncClient(Operations, AsyncSender):
    """Asynchronous connection to one benchpool service.

    Each operation of the table is a method. All raise the classes of
    ``benchpool_scheduler.errors``.

    Args:
        credentials: Address and token, see ``discover``.
        patience_s: Retry timeout while the service is down, in seconds, for requests that are safe
            to repeat. Streams resume where they were cut.
        keyed_patience_s: The same for requests with an idempotency key, as a minimum.
        on_wait: Called when a call waits longer than a moment.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        patience_s: float = 0.0,
        keyed_patience_s: float = sending.KEYED_PATIENCE_S,
        on_wait: sending.OnWait | None = None,
    ) -> None:
        self.credentials = credentials
        self.patience = sending.Patience(patience_s, keyed_patience_s, on_wait)
        self._http = httpx.AsyncClient(**sending.client_options(credentials, sending.TIMEOUT))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a call of the table and return its answer. Retries as ``patience`` allows."""
        tries = self.patience.tries(call)
        while True:
            try:
                return await self._once(call, tries.silent)
            except BenchpoolError as failed:
                if other_versions.lacks_key(call, failed):
                    raise other_versions.lacking(call, failed, await self._document()) from failed
                pause = tries.pause_after(call, failed)
            await asyncio.sleep(pause)

    async def _document(self) -> object:
        """Return the service's OpenAPI document, or None if it cannot be read."""
        with contextlib.suppress(BenchpoolError):
            return await self._once(Operations.openapi.call(), False)
        return None

    async def _once(self, call: Call[T], silent: bool) -> T:
        options, content = sending.request_options(call, silent), call.given.content
        if isinstance(content, Path):
            size = (await asyncio.to_thread(content.stat)).st_size
            options["headers"]["Content-Length"] = str(size)
            options["content"] = _pieces(content, size)
        else:
            options["content"] = call.body if content is None else content
        try:
            answer = await self._http.request(call.operation.method, call.path, **options)
        except httpx.HTTPError as failed:
            raise sending.translated(failed, self.credentials.url, call) from failed
        return answers.read(
            call, answer.status_code, answer.headers, answer.content, self.credentials.url
        )

    async def follow(self, call: Call[T]) -> AsyncIterator[T]:
        """Yield the items of an event stream. After a cut the stream is reopened where it was."""
        stream, again = followed(call), sending.Reconnecting(self.patience.usual_s)
        while True:
            try:
                async for item in self._stream(stream, again):
                    yield item
            except Unavailable as failed:
                again.lost(failed)
            if stream.done:
                return
            await asyncio.sleep(again.pause())

    async def _stream(self, stream: Followed[T], again: sending.Reconnecting) -> AsyncIterator[T]:
        call, parser, url = stream.call, Parser(), self.credentials.url
        options = sending.stream_options(call)
        try:
            async with self._http.stream("GET", call.path, **options) as answer:
                if answer.status_code != 200:
                    raise answers.error(
                        answer.status_code, answer.headers, await answer.aread(), url
                    )
                again.opened()
                for item in stream.opened():
                    yield item
                async for chunk in answer.aiter_raw():
                    for event in parser.feed(chunk):
                        again.received()
                        for item in stream.take(event):
                            yield item
        except httpx.HTTPError as failed:
            raise sending.translated(failed, url) from failed

    async def wait(self, id_: str) -> Job:
        """Wait for a job to end and return it."""
        async for event in self.events():
            if event.kind in ("open", "reset"):
                job = (await self.job(id_)).job
            elif isinstance(event.data, Job) and event.data.id == id_:
                job = event.data
            else:
                continue
            if job.state in ENDED:
                return job
        raise AssertionError("events never end")


async def _pieces(path: Path, size: int) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        pieces = sending.pieces(file, size)
        while piece := await asyncio.to_thread(next, pieces, b""):
            yield piece
