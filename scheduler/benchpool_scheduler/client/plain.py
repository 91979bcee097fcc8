"""``Client``: the operations as blocking methods, for terminals, scripts and kernels."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import httpx

from benchpool_scheduler.client import answers, other_versions, sending
from benchpool_scheduler.client.credentials import Credentials
from benchpool_scheduler.client.streams import Followed, Parser, followed
from benchpool_scheduler.contract import ENDED, Job
from benchpool_scheduler.contract.operation import Call, PlainSender
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import BenchpoolError, Unavailable

T = TypeVar("T")


class Client(Operations, PlainSender):
    """Connection to one benchpool service, with blocking calls.

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
        self._http = httpx.Client(**sending.client_options(credentials, sending.TIMEOUT))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send a call of the table and return its answer. Retries as ``patience`` allows."""
        tries = self.patience.tries(call)
        while True:
            try:
                return self._once(call, tries.silent)
            except BenchpoolError as failed:
                if other_versions.lacks_key(call, failed):
                    raise other_versions.lacking(call, failed, self._document()) from failed
                pause = tries.pause_after(call, failed)
            time.sleep(pause)

    def _document(self) -> object:
        """Return the service's OpenAPI document, or None if it cannot be read."""
        with contextlib.suppress(BenchpoolError):
            return self._once(Operations.openapi.call(), False)
        return None

    def _once(self, call: Call[T], silent: bool) -> T:
        options, content = sending.request_options(call, silent), call.given.content
        method, path = call.operation.method, call.path
        try:
            if isinstance(content, Path):
                with content.open("rb") as file:
                    size = content.stat().st_size
                    options["headers"]["Content-Length"] = str(size)
                    options["content"] = sending.pieces(file, size)
                    answer = self._http.request(method, path, **options)
            else:
                options["content"] = call.body if content is None else content
                answer = self._http.request(method, path, **options)
        except httpx.HTTPError as failed:
            raise sending.translated(failed, self.credentials.url, call) from failed
        return answers.read(
            call, answer.status_code, answer.headers, answer.content, self.credentials.url
        )

    def follow(self, call: Call[T]) -> Iterator[T]:
        """Yield the items of an event stream. After a cut the stream is reopened where it was."""
        stream, again = followed(call), sending.Reconnecting(self.patience.usual_s)
        while True:
            try:
                yield from self._stream(stream, again)
            except Unavailable as failed:
                again.lost(failed)
            if stream.done:
                return
            time.sleep(again.pause())

    def _stream(self, stream: Followed[T], again: sending.Reconnecting) -> Iterator[T]:
        call, parser, url = stream.call, Parser(), self.credentials.url
        options = sending.stream_options(call)
        try:
            with self._http.stream("GET", call.path, **options) as answer:
                if answer.status_code != 200:
                    raise answers.error(answer.status_code, answer.headers, answer.read(), url)
                again.opened()
                yield from stream.opened()
                for chunk in answer.iter_raw():
                    for event in parser.feed(chunk):
                        again.received()
                        yield from stream.take(event)
        except httpx.HTTPError as failed:
            raise sending.translated(failed, url) from failed

    def wait(self, id_: str) -> Job:
        """Wait for a job to end and return it."""
        for event in self.events():
            if event.kind in ("open", "reset"):
                job = self.job(id_).job
            elif isinstance(event.data, Job) and event.data.id == id_:
                job = event.data
            else:
                continue
            if job.state in ENDED:
                return job
        raise AssertionError("events never end")
