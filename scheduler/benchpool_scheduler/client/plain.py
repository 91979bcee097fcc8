"""``Client``: the calls as plain methods, for terminals, scripts and kernels."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
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


class Client:
    """A connection to one benchpool service, by plain blocking calls.

    Args:
        credentials: Address and token, see ``discover``.
        patience_s: For how long a service that is away is tried again, where a repeat is
            harmless. Streams go on at the place of the cut.

    All methods raise the classes of ``benchpool_scheduler.errors``.
    """

    def __init__(self, credentials: Credentials, *, patience_s: float = 0.0) -> None:
        self.credentials = credentials
        self.patience_s = patience_s
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

    def send(self, call: Call[T], content: Path | bytes | None = None) -> T:
        """Send a call of ``benchpool_scheduler.client.calls``, with ``content`` as its body."""
        deadline = time.monotonic() + self.patience_s
        for pause in sending.pauses():
            try:
                return self._once(call, content)
            except BenchpoolError as failed:
                late = time.monotonic() + pause > deadline
                if late or not sending.may_repeat(call, failed):
                    raise
                time.sleep(pause)
        raise AssertionError("pauses never end")

    def _once(self, call: Call[T], content: Path | bytes | None) -> T:
        options = sending.request_options(call)
        try:
            if isinstance(content, Path):
                with content.open("rb") as file:
                    options["headers"]["Content-Length"] = str(content.stat().st_size)
                    options["content"] = file
                    answer = self._http.request(call.method, call.path, **options)
            else:
                options["content"] = call.body if content is None else content
                answer = self._http.request(call.method, call.path, **options)
        except httpx.HTTPError as failed:
            raise sending.translated(failed, self.credentials.url) from failed
        return answers.read(
            call, answer.status_code, answer.headers, answer.content, self.credentials.url
        )

    # ------------------------------------------------------------------ jobs

    def submit(self, submission: JobSubmission) -> Job:
        """Submit a job; it is on disk when this returns.

        Without a ``key`` one is made up, so that trying again never makes two jobs of one.
        """
        if submission.key is None:
            submission = msgspec.structs.replace(submission, key=uuid.uuid4().hex)
        return self.send(calls.submit(submission))

    def results(self, id_: str, *, worker: int = 0, offset: int = 0) -> bytes:
        """Read bytes of packed results; ``client.results.fetch`` unpacks all of them."""
        return self.send(calls.results(id_, worker=worker, offset=offset))

    def preview(self, submission: JobSubmission) -> Preview:
        """Say what would happen if this were submitted now."""
        return self.send(calls.preview(submission))

    def jobs(
        self,
        *,
        all_: bool = False,
        project: str | None = None,
        state: str | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """List jobs, newest first: one's own, or with ``all_`` every one that one may see."""
        return self.send(calls.jobs(all_=all_, project=project, state=state, limit=limit))

    def job(self, id_: str) -> JobDetail:
        """Read a job and its attempts."""
        return self.send(calls.job(id_))

    def why(self, id_: str) -> Why:
        """Ask why a job waits."""
        return self.send(calls.why(id_))

    def submission(self, id_: str) -> JobSubmission:
        """Read back what was submitted."""
        return self.send(calls.submission(id_))

    def pause(self, id_: str, reason: str | None = None) -> Job:
        """Stop a job keeping its progress, until it is resumed."""
        return self.send(calls.act(id_, "pause", reason))

    def resume(self, id_: str, reason: str | None = None) -> Job:
        """Queue a paused job again."""
        return self.send(calls.act(id_, "resume", reason))

    def cancel(self, id_: str, reason: str | None = None) -> Job:
        """End a job for good."""
        return self.send(calls.act(id_, "cancel", reason))

    def change(self, id_: str, *, priority: int | None = None, workers: int | None = None) -> Job:
        """Give an accepted job another priority, other workers, or both."""
        return self.send(calls.change(id_, priority=priority, workers=workers))

    # ------------------------------------------------------------------ logs and events

    def log(
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
        return self.send(
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
    ) -> Iterator[LogText]:
        """Yield a log as it is written, from a byte offset or a time until it ends."""
        return self._follow(FollowedLog(id_, attempt, worker, offset, since))

    def events(self, after: int | None = None) -> Iterator[Event]:
        """Yield all changes that one may see; see ``Event``."""
        return self._follow(FollowedEvents(after))

    def wait(self, id_: str) -> Job:
        """Return the job when it has ended."""
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

    def _follow(self, followed: Followed[T]) -> Iterator[T]:
        again = sending.Reconnecting(self.patience_s)
        while True:
            try:
                yield from self._stream(followed, again)
            except Unavailable as failed:
                again.lost(failed)
            if followed.done:
                return
            time.sleep(again.pause())

    def _stream(self, followed: Followed[T], again: sending.Reconnecting) -> Iterator[T]:
        call, parser, url = followed.call(), Parser(), self.credentials.url
        options = sending.stream_options(call)
        try:
            with self._http.stream(call.method, call.path, **options) as answer:
                if answer.status_code != 200:
                    raise answers.error(answer.status_code, answer.read(), url)
                again.opened()
                yield from followed.opened()
                for chunk in answer.iter_raw():
                    for event in parser.feed(chunk):
                        again.received()
                        yield from followed.take(event)
        except httpx.HTTPError as failed:
            raise sending.translated(failed, url) from failed

    # ------------------------------------------------------------------ pool, leases, the rest

    def quota(self, user: str | None = None) -> Quota:
        """Read a user's build quota and projects; one's own by default."""
        return self.send(calls.quota(user))

    def status(self) -> Status:
        """Read the pool in one object."""
        return self.send(calls.status())

    def reserve(self, request: LeaseRequest) -> Lease:
        """Reserve build GPUs for a server that starts (R2)."""
        return self.send(calls.reserve(request))

    def wait_in_line(self, request: LineRequest) -> LineAnswer:
        """Reserve build GPUs for a server, or keep its place in line for them."""
        return self.send(calls.wait_in_line(request))

    def line(self) -> list[InLine]:
        """List who waits in line for build GPUs, the next one first."""
        return self.send(calls.line())

    def release(self, id_: str) -> None:
        """Give a lease back, or leave the line."""
        self.send(calls.release(id_))

    def leases(self, user: str | None = None) -> list[Lease]:
        """List leases."""
        return self.send(calls.leases(user))

    def missing_objects(self, hashes: Sequence[str]) -> list[str]:
        """Return those of these content hashes that the service lacks."""
        return self.send(calls.missing_objects(hashes)).sha256

    def put_object(self, sha256: str, content: Path | bytes) -> None:
        """Upload one content; the service checks its hash."""
        self.send(calls.put_object(sha256), content)

    def check_config(self, text: str) -> ConfigurationChange:
        """Say what a ``benchpool.yaml`` would change, without using it."""
        return self.send(calls.check_config(text))

    def apply_config(self, text: str) -> ConfigurationChange:
        """Use this ``benchpool.yaml`` from now on: all or nothing."""
        return self.send(calls.apply_config(text))

    def whatif(self, question: WhatIfQuestion) -> WhatIf:
        """Say what would be otherwise with another ``benchpool.yaml`` or more GPUs."""
        return self.send(calls.whatif(question))

    def history(self, days: float) -> bytes:
        """Read what ran and ended in the last days, as a trace that can be replayed."""
        return self.send(calls.history(days))
