"""API routes for logs: byte ranges, and a stream that follows.

A log is the user's own output. It is sent as plain text that no browser interprets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.api.stream import Frame, Timing, encoded, relay, resume_from
from benchpool_scheduler.contract import ENDED, FollowQuery, LogEnd, LogQuery, LogText, ResultsQuery
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.runtime import WorkerId

PIECE = 64 * 1024
LOOK_S = 3.0


async def read(request: Request) -> Answer:
    """Return a range of a log. Headers give the next offset and whether the log has ended."""
    query: LogQuery = request.query
    worker = request.pool.logs.which(
        request.caller, request.path["job"], attempt=query.attempt, worker=query.worker
    )
    chunk = await request.pool.logs.read(
        request.caller,
        worker.job,
        attempt=worker.attempt,
        worker=worker.worker,
        offset=await _begin(request, worker, query.since, query.offset),
        limit=query.limit,
    )
    headers = {
        "Benchpool-Log-Attempt": str(worker.attempt),
        "Benchpool-Log-Offset": str(chunk.offset),
        "Benchpool-Log-Next": str(chunk.next_offset),
        "Benchpool-Log-Skipped": str(chunk.skipped),
        "Benchpool-Log-Ended": "true" if chunk.ended else "false",
    }
    return Answer(chunk.data, headers=headers)


async def results(request: Request) -> Answer:
    """Return a range of results. An empty range marks the end."""
    query: ResultsQuery = request.query
    found = await request.pool.logs.read_results(
        request.caller,
        request.path["job"],
        worker=query.worker,
        offset=query.offset,
        limit=query.limit,
    )
    return Answer(found)


async def follow(request: Request, timing: Timing) -> Answer:
    """Stream a log. The ID of an event is the byte offset after it."""
    query: FollowQuery = request.query
    worker = request.pool.logs.which(
        request.caller, request.path["job"], attempt=query.attempt, worker=query.worker
    )
    offset = resume_from(request, None)
    if offset is None:
        offset = await _begin(request, worker, query.since, query.offset)
    frames = _frames(request, worker.job, worker.attempt, worker.worker, offset)
    await relay(request, frames, timing)
    return Answer()


async def _begin(request: Request, worker: WorkerId, since: datetime | None, offset: int) -> int:
    if since is None:
        return offset
    return await request.pool.logs.find_offset(
        request.caller,
        worker.job,
        since.timestamp(),
        attempt=worker.attempt,
        worker=worker.worker,
    )


async def _frames(
    request: Request, job: str, attempt: int, worker: int, offset: int
) -> AsyncIterator[bytes]:
    pool, caller = request.pool, request.caller
    while True:
        chunk = await pool.logs.read(
            caller, job, attempt=attempt, worker=worker, offset=offset, limit=PIECE
        )
        used = whole_characters(chunk.data) if not chunk.ended else len(chunk.data)
        if used or chunk.skipped:
            text = chunk.data[:used].decode("utf-8", "replace")
            piece = LogText(attempt, chunk.offset, text, chunk.skipped)
            yield encoded([Frame(chunk.offset + used, "log", msgspec.json.encode(piece))])
        offset = chunk.offset + used
        if chunk.ended:
            yield encoded([Frame(offset, "end", msgspec.json.encode(LogEnd(attempt)))])
            return
        if not used:
            more = await pool.logs.wait(
                caller,
                job,
                attempt=attempt,
                worker=worker,
                offset=chunk.next_offset,
                timeout_s=LOOK_S,
            )
            if not more and pool.jobs.detail(caller, job).job.state in ENDED:
                # The job ended without starting this worker, so there is no output.
                yield encoded([Frame(offset, "end", msgspec.json.encode(LogEnd(attempt)))])
                return


def whole_characters(data: bytes) -> int:
    """Return the number of bytes up to the last complete UTF-8 character.

    At most three bytes are held back. Bytes that are not UTF-8 are not held back.

    >>> whole_characters("aé".encode()[:-1]), whole_characters(b"a" + bytes([0xFF] * 5))
    (1, 6)
    """
    for back in range(1, min(4, len(data) + 1)):
        lead = data[-back]
        if lead & 0b1100_0000 == 0b1000_0000:
            continue  # inside a character
        length = 2 if lead >> 5 == 0b110 else 3 if lead >> 4 == 0b1110 else 4
        is_lead = lead >> 5 == 0b110 or lead >> 4 == 0b1110 or lead >> 3 == 0b11110
        return len(data) - back if is_lead and back < length else len(data)
    return len(data)


def handlers(timing: Timing) -> Mapping[Operation[Any], Handle]:
    """Return the handlers of these operations. ``timing`` is that of event streams."""
    return {
        Operations.log: read,
        Operations.results: results,
        Operations.follow_log: partial(follow, timing=timing),
    }
