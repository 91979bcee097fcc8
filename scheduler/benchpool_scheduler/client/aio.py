"""``AsyncClient``: the calls as coroutines, for services; method by method as ``Client``."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import httpx
import msgspec

from benchpool_scheduler.client import answers, calls, sending
from benchpool_scheduler.client.calls import Call, LogRange
from benchpool_scheduler.client.credentials import Credentials
from benchpool_scheduler.client.streams import (
    Event,
    Followed,
    FollowedEvents,
    FollowedLog,
    Parser,
)
from benchpool_scheduler.contract import (
    ENDED,
    ConfigurationChange,
    InLine,
    Job,
    JobDetail,
    JobSubmission,
    Lease,
    LeaseRequest,
    LineAnswer,
    LineRequest,
    LogText,
    Preview,
    Quota,
    Status,
    WhatIf,
    WhatIfQuestion,
    Why,
)
from benchpool_scheduler.errors import BenchpoolError, Unavailable

T = TypeVar("T")


class AsyncClient:
    """A connection to one benchpool service, by coroutines.

    Args:
        credentials: Address and token, see ``discover``.
        patience_s: For how long a service that is away is tried again, where a repeat is
            harmless. Streams go on at the place of the cut.

    All methods raise the classes of ``benchpool_scheduler.errors``.
    """

    def __init__(self, credentials: Credentials, *, patience_s: float = 0.0) -> None:
        self.credentials = credentials
        self.patience_s = patience_s
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

    async def send(self, call: Call[T], content: Path | bytes | None = None) -> T:
        """Send a call of ``benchpool_scheduler.client.calls``, with ``content`` as its body."""
        deadline = time.monotonic() + self.patience_s
        for pause in sending.pauses():
            try:
                return await self._once(call, content)
            except BenchpoolError as failed:
                late = time.monotonic() + pause > deadline
                if late or not sending.may_repeat(call, failed):
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("pauses never end")

    async def _once(self, call: Call[T], content: Path | bytes | None) -> T:
        options = sending.request_options(call)
        if isinstance(content, Path):
            size = (await asyncio.to_thread(content.stat)).st_size
            options["headers"]["Content-Length"] = str(size)
            options["content"] = _pieces(content)
        elif content is not None:
            options["content"] = content
        try:
            answer = await self._http.request(call.method, call.path, **options)
        except httpx.HTTPError as failed:
            raise sending.translated(failed, self.credentials.url) from failed
        return answers.read(
            call, answer.status_code, answer.headers, answer.content, self.credentials.url
        )

    # ------------------------------------------------------------------ jobs

    async def submit(self, submission: JobSubmission) -> Job:
        """Submit a job; it is on disk when this returns.

        Without a ``key`` one is made up, so that trying again never makes two jobs of one.
        """
        if submission.key is None:
            submission = msgspec.structs.replace(submission, key=uuid.uuid4().hex)
        return await self.send(calls.submit(submission))

    async def results(self, id_: str, *, worker: int = 0, offset: int = 0) -> bytes:
        """Read bytes of packed results; ``client.results.fetch_async`` unpacks all of them."""
        return await self.send(calls.results(id_, worker=worker, offset=offset))

    async def preview(self, submission: JobSubmission) -> Preview:
        """Say what would happen if this were submitted now."""
        return await self.send(calls.preview(submission))

    async def jobs(
        self,
        *,
        all_: bool = False,
        project: str | None = None,
        state: str | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """List jobs, newest first: one's own, or with ``all_`` every one that one may see."""
        return await self.send(calls.jobs(all_=all_, project=project, state=state, limit=limit))

    async def job(self, id_: str) -> JobDetail:
        """Read a job and its attempts."""
        return await self.send(calls.job(id_))

    async def why(self, id_: str) -> Why:
        """Ask why a job waits."""
        return await self.send(calls.why(id_))

    async def submission(self, id_: str) -> JobSubmission:
        """Read back what was submitted."""
        return await self.send(calls.submission(id_))

    async def pause(self, id_: str, reason: str | None = None) -> Job:
        """Stop a job keeping its progress, until it is resumed."""
        return await self.send(calls.act(id_, "pause", reason))

    async def resume(self, id_: str, reason: str | None = None) -> Job:
        """Queue a paused job again."""
        return await self.send(calls.act(id_, "resume", reason))

    async def cancel(self, id_: str, reason: str | None = None) -> Job:
        """End a job for good."""
        return await self.send(calls.act(id_, "cancel", reason))

    async def change(
        self, id_: str, *, priority: int | None = None, workers: int | None = None
    ) -> Job:
        """Give an accepted job another priority, other workers, or both."""
        return await self.send(calls.change(id_, priority=priority, workers=workers))

    # ------------------------------------------------------------------ logs and events

    async def log(
        self,
        id_: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int | None = None,
        limit: int | None = None,
        since: datetime | None = None,
    ) -> LogRange:
        """Read some bytes of a log; a negative ``offset`` counts from its end."""
        return await self.send(
            calls.log(id_, attempt=attempt, worker=worker, offset=offset, limit=limit, since=since)
        )

    def follow_log(
        self,
        id_: str,
        *,
        attempt: int | None = None,
        worker: int = 0,
        offset: int = 0,
        since: datetime | None = None,
    ) -> AsyncIterator[LogText]:
        """Yield a log as it is written, from a byte offset or a time until it ends."""
        return self._follow(FollowedLog(id_, attempt, worker, offset, since))

    def events(self, after: int | None = None) -> AsyncIterator[Event]:
        """Yield all changes that one may see; see ``Event``."""
        return self._follow(FollowedEvents(after))

    async def wait(self, id_: str) -> Job:
        """Return the job when it has ended."""
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

    async def _follow(self, followed: Followed[T]) -> AsyncIterator[T]:
        again = sending.Reconnecting(self.patience_s)
        while True:
            try:
                async for item in self._stream(followed, again):
                    yield item
            except Unavailable as failed:
                again.lost(failed)
            if followed.done:
                return
            await asyncio.sleep(again.pause())

    async def _stream(self, followed: Followed[T], again: sending.Reconnecting) -> AsyncIterator[T]:
        call, parser, url = followed.call(), Parser(), self.credentials.url
        options = sending.stream_options(call)
        try:
            async with self._http.stream(call.method, call.path, **options) as answer:
                if answer.status_code != 200:
                    raise answers.error(answer.status_code, await answer.aread(), url)
                again.opened()
                for item in followed.opened():
                    yield item
                async for chunk in answer.aiter_raw():
                    for event in parser.feed(chunk):
                        again.received()
                        for item in followed.take(event):
                            yield item
        except httpx.HTTPError as failed:
            raise sending.translated(failed, url) from failed

    # ------------------------------------------------------------------ pool, leases, the rest

    async def quota(self, user: str | None = None) -> Quota:
        """Read a user's build quota and projects; one's own by default."""
        return await self.send(calls.quota(user))

    async def status(self) -> Status:
        """Read the pool in one object."""
        return await self.send(calls.status())

    async def reserve(self, request: LeaseRequest) -> Lease:
        """Reserve build GPUs for a server that starts (R2)."""
        return await self.send(calls.reserve(request))

    async def wait_in_line(self, request: LineRequest) -> LineAnswer:
        """Reserve build GPUs for a server, or keep its place in line for them."""
        return await self.send(calls.wait_in_line(request))

    async def line(self) -> list[InLine]:
        """List who waits in line for build GPUs, the next one first."""
        return await self.send(calls.line())

    async def release(self, id_: str) -> None:
        """Give a lease back, or leave the line."""
        await self.send(calls.release(id_))

    async def leases(self, user: str | None = None) -> list[Lease]:
        """List leases."""
        return await self.send(calls.leases(user))

    async def missing_objects(self, hashes: Sequence[str]) -> list[str]:
        """Return those of these content hashes that the service lacks."""
        return (await self.send(calls.missing_objects(hashes))).sha256

    async def put_object(self, sha256: str, content: Path | bytes) -> None:
        """Upload one content; the service checks its hash."""
        await self.send(calls.put_object(sha256), content)

    async def check_config(self, text: str) -> ConfigurationChange:
        """Say what a ``benchpool.yaml`` would change, without using it."""
        return await self.send(calls.check_config(text))

    async def apply_config(self, text: str) -> ConfigurationChange:
        """Use this ``benchpool.yaml`` from now on: all or nothing."""
        return await self.send(calls.apply_config(text))

    async def whatif(self, question: WhatIfQuestion) -> WhatIf:
        """Say what would be otherwise with another ``benchpool.yaml`` or more GPUs."""
        return await self.send(calls.whatif(question))

    async def history(self, days: float) -> bytes:
        """Read what ran and ended in the last days, as a trace that can be replayed."""
        return await self.send(calls.history(days))


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while piece := await asyncio.to_thread(file.read, 1 << 18):
            yield piece
