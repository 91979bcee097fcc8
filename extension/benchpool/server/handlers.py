"""Request handlers of the server extension. Each requires a logged-in user of this server."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
import uuid
from collections.abc import Awaitable
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import iostream, web

from benchpool.drafts import Draft
from benchpool.server import allowed, example, kept_values, repeated_runs, sent
from benchpool.server.kernel_answers import KernelAnswers
from benchpool.server.pool_access import PoolAccess
from benchpool.server.preparation import Preparer
from benchpool.server.requests import (
    ExampleNotebook,
    ResultFiles,
    SendRequest,
    SentJob,
    decode,
)
from benchpool.server.served_folder import ServedFolder
from benchpool_scheduler.client import AsyncClient, results, sending, snapshot
from benchpool_scheduler.contract import Job, NotebookEntry
from benchpool_scheduler.contract.jobs import NOT_DELIVERED
from benchpool_scheduler.contract.sweeps import SweepRequest
from benchpool_scheduler.errors import (
    BenchpoolError,
    InvalidInput,
    NotFound,
    ServerFault,
    TooLarge,
    Unavailable,
)

RESOURCE = "benchpool"
ANSWER_S = 30.0
_JOB = re.compile(r"[a-z0-9]{26}")


class Handler(APIHandler):
    """Common base of the routes: the pool, the served folder, and errors as one JSON object."""

    auth_resource = RESOURCE

    @cached_property
    def pool(self) -> PoolAccess:
        """Connection to the scheduler."""
        found: PoolAccess = self.settings["benchpool"]
        return found

    @cached_property
    def preparer(self) -> Preparer:
        """Preparer for this server; kept between requests, because it caches lists of files."""
        known = self.settings.get("benchpool_preparer")
        if known is None:
            root = getattr(self.contents_manager, "root_dir", None) or "."
            known = Preparer(
                ServedFolder(Path(root)),
                self.kernel_spec_manager,
                self.pool,
                KernelAnswers(self.kernel_manager),
                self.kernel_manager.default_kernel_name,
            )
            self.settings["benchpool_preparer"] = known
        found: Preparer = known
        return found

    async def answer(self, work: Awaitable[Any], status: int = 200) -> None:
        """Send what ``work`` returns, or the error that it raises."""
        try:
            body = msgspec.json.encode(await work)
        except BenchpoolError as failed:
            await self.refuse(failed)
            return
        except Exception:
            await self.refuse(self._own_fault())
            return
        self.set_status(status)
        await self.finish(body)

    def _own_fault(self) -> ServerFault:
        """Log the current exception, and return an error that names the log entry."""
        mark = uuid.uuid4().hex[:8]
        self.log.exception("benchpool: entry %s", mark)
        return ServerFault(
            "Internal error of benchpool on this notebook server. Its log has the details in entry "
            f"{mark}. Check the list of jobs before you send again.",
            numbers={"entry": mark},
        )

    async def refuse(self, error: BenchpoolError) -> None:
        """Send an error in the scheduler's format."""
        self.set_status(error.http_status)
        await self.finish(msgspec.json.encode(error.as_json()))


class PrepareHandler(Handler):
    """``POST prepare``: what would be sent, and whether the pool would accept it."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Answer the dialog's request."""
        await self.answer(self._prepared())

    async def _prepared(self) -> Any:
        return await self.preparer.prepare(decode(self.request.body, allowed.MAX_BODY))


class SendHandler(Handler):
    """``POST send``: the same body with a key; returns the job, or a sweep's first trial."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Submit the job or the sweep."""
        await self.answer(self._sent(), 201)

    async def _sent(self) -> Any:
        request, draft = await self._draft()
        swept = repeated_runs.sweep_of(request, draft)
        if swept is not None:
            return await self.pool.ask(lambda pool: _begun(pool, swept), ANSWER_S)
        return await self.pool.ask(lambda pool: pool.submit(draft.submission), ANSWER_S)

    async def _draft(self) -> tuple[SendRequest, Draft]:
        """Return the interpreted request and its draft, whose contents are uploaded.

        Errors: those of the submission.
        """
        request = decode(self.request.body, allowed.MAX_BODY)
        if request.key is None:
            raise InvalidInput(
                "The key is missing. It makes a repeated request harmless.", field="key"
            )
        with tempfile.TemporaryDirectory(prefix="benchpool-values-") as folder:
            request, draft = await self.preparer.to_send(request, Path(folder))
            await self._check(request, draft)
            began = time.monotonic()
            count = await snapshot.upload_async(self.pool.client, draft.contents)
            took = time.monotonic() - began
            self.preparer.offered.uploaded(request.kernel_id, draft, count, took)
        return request, draft

    async def _check(self, request: SendRequest, draft: Draft) -> None:
        """Let the pool check what is sent before a large upload. Errors: those of the pool."""
        if draft.values.bytes:
            await self.pool.ask(lambda pool: pool.preview(draft.submission), ANSWER_S)
        await repeated_runs.preview(self.pool, request, draft, draft.submission, ANSWER_S)


class ScheduleHandler(SendHandler):
    """``POST schedule``: the same body as ``send`` with times; returns the schedule."""

    async def _sent(self) -> Any:
        request, draft = await self._draft()
        times = repeated_runs.schedule_of(request, draft)
        if times is None:
            raise InvalidInput("The times are missing. Write 'night at 2'.", field="when")
        return await self.pool.ask(lambda pool: pool.begin_schedule(times), ANSWER_S)


async def _begun(pool: AsyncClient, asked: SweepRequest) -> Job:
    """Start a sweep and return the job of its first trial."""
    sweep = await pool.begin_sweep(asked)
    first = min(sweep.trials, key=lambda one: one.number, default=None)
    if first is None or first.job is None:
        kind, each = ("array", "task") if sweep.plan.array else ("sweep", "trial")
        raise Unavailable(
            f"The {kind} {sweep.id[:8]} was sent, but its first {each} could not start: "
            f"{sweep.problem or sweep.text} It is retried. Do not send it again.",
            code="first-trial",
        )
    return (await pool.job(first.job)).job


class ResultHandler(Handler):
    """``GET result?job=ID``: the location of the results."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer for one job."""
        await self.answer(self._found(self.get_query_argument("job", "")))

    async def _found(self, job: str) -> ResultFiles:
        if not _JOB.fullmatch(job):
            raise NotFound("There is no such job.", field="job")
        submission = await self.pool.ask(lambda pool: pool.submission(job), ANSWER_S)
        served = self.preparer.served
        folder = Path(submission.output_dir) if submission.output_dir else None
        if folder is not None and served.relative(folder) is not None:
            await self._fetch(job, folder)
        if folder is None or not folder.is_dir() or served.relative(folder) is None:
            return ResultFiles(None, None, [])
        files = await asyncio.to_thread(served.files_below, folder)
        entry, notebook = submission.entry, None
        if isinstance(entry, NotebookEntry):
            copy = served.relative(folder / entry.name)
            notebook = copy if copy in files else None
        values, left_out = await asyncio.to_thread(kept_values.listed, folder, job)
        return ResultFiles(notebook, served.relative(folder), files, values, left_out)

    async def _fetch(self, job: str, folder: Path) -> None:
        """Download results that an ended job could not deliver itself.

        Raises:
            Unavailable: The results cannot be downloaded; the message gives their location.
        """
        client = self.pool.client
        detail = await self.pool.ask(lambda pool: pool.job(job), ANSWER_S)
        reason = detail.job.reason
        undelivered = reason is not None and reason.code == NOT_DELIVERED
        there = await asyncio.to_thread(folder.is_dir)
        if detail.job.ended is None or (there and not undelivered):
            return
        try:
            files = await results.fetch_async(client, job, folder, detail.most_workers)
        except InvalidInput:
            if not undelivered:
                raise
            files = []
        if reason is not None and undelivered and not files:
            raise Unavailable(f"{reason.text} {reason.remedy}", code=NOT_DELIVERED)


class SentHandler(Handler):
    """``GET sent?job=ID``: what was sent, its location, and its differences from the present files.

    With ``file``, a file name from a traceback, ``path`` is the path of that file.
    """

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer for one job."""
        file = self.get_query_argument("file", None)
        await self.answer(self._described(self.get_query_argument("job", ""), file))

    async def _described(self, job: str, file: str | None) -> SentJob:
        if not _JOB.fullmatch(job):
            raise NotFound("There is no such job.", field="job")
        detail, submission, code = await asyncio.gather(
            self.pool.ask(lambda pool: pool.job(job), ANSWER_S),
            self.pool.ask(lambda pool: pool.submission(job), ANSWER_S),
            self.pool.ask(lambda pool: pool.code(job), ANSWER_S),
        )
        served = self.preparer.served
        printed = None if file is None else file[:4096].replace("\0", "")
        return await asyncio.to_thread(sent.describe, served, detail.job, submission, code, printed)


class ExampleHandler(Handler):
    """``POST example``: the path of the example notebook, which is created if it is missing."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Answer with its path."""
        await self.answer(self._put())

    async def _put(self) -> ExampleNotebook:
        return ExampleNotebook(await asyncio.to_thread(example.put, self.preparer.served.root))


class ForwardHandler(Handler):
    """Requests of the page forwarded to the scheduler, by an allow-list, with the server's
    token.
    """

    _track_activity = False  # a page that only watches does not keep an idle server alive

    @web.authenticated
    @authorized
    async def get(self, path: str) -> None:
        """Forward a read request or open a stream."""
        await self._forward(path)

    @web.authenticated
    @authorized
    async def post(self, path: str) -> None:
        """Forward an action."""
        await self._forward(path)

    def on_connection_close(self) -> None:
        """Close the scheduler's stream when the page has closed."""
        super().on_connection_close()
        task = getattr(self, "_task", None)
        if task is not None:
            task.cancel()

    async def _forward(self, path: str) -> None:
        method = self.request.method or "GET"
        if not allowed.is_forwarded(method, path):
            raise web.HTTPError(404, f"There is no {method} {path[:100]} here")
        if len(self.request.body) > allowed.MAX_BODY:
            await self.refuse(_too_large(len(self.request.body)))
            return
        self._task = asyncio.ensure_future(self._pass_on(method, path))
        try:
            await self._task
        except (asyncio.CancelledError, iostream.StreamClosedError):
            return  # the page has closed
        except BenchpoolError as failed:
            await self.refuse(failed)
        except httpx.HTTPError as failed:
            await self._cut(failed)

    async def _pass_on(self, method: str, path: str) -> None:
        headers = {
            name: self.request.headers[name]
            for name in allowed.REQUEST_HEADERS
            if name in self.request.headers
        }
        streams = path == "events" or path.endswith("/stream")
        # A read timeout lets the page show in time that the scheduler does not answer.
        read_s = sending.SILENCE_S if streams else sending.ANSWER_S
        timeout = httpx.Timeout(30.0, connect=5.0, read=read_s)
        url = quote(path, safe="/") + (f"?{self.request.query}" if self.request.query else "")
        body = self.request.body if method == "POST" else None
        async with self.pool.http.stream(
            method, url, headers=headers, content=body, timeout=timeout
        ) as answer:
            self._begin(answer)
            if streams:
                await self.flush()  # the page shows the connection before the first event
            async for piece in answer.aiter_bytes():
                self.write(piece)
                await self.flush()
        kind = answer.headers.get("Content-Type", "application/json")
        await self.finish(set_content_type=kind) if not self._headers_written else await self.end()

    def _begin(self, answer: httpx.Response) -> None:
        self.set_status(answer.status_code)
        self.set_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("X-Accel-Buffering", "no")
        for name, value in answer.headers.items():
            if allowed.ANSWER_HEADERS.fullmatch(name):
                self.set_header(name, value)

    async def end(self) -> None:
        """Finish a response whose headers have been sent."""
        await web.RequestHandler.finish(self)

    async def _cut(self, failed: httpx.HTTPError) -> None:
        """Report that the scheduler is unreachable; a stream that has begun can only end."""
        if self._headers_written:
            await self.end()
            return
        error = sending.translated(failed, str(self.pool.http.base_url))
        await self.pool.forget()
        await self.refuse(error)


def _too_large(size: int) -> TooLarge:
    limit = allowed.MAX_BODY
    return TooLarge(
        f"The request has {size >> 20} MiB, the limit is {limit >> 20} MiB. Send less at once.",
        numbers={"bytes": size, "limit": limit},
    )
