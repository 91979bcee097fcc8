"""Following a job: its log through all attempts, and what happens to it in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from benchpool_scheduler.cli import words
from benchpool_scheduler.client import Client
from benchpool_scheduler.contract import ENDED, Job, LogText, State

BEFORE_A_PASS = "next-pass"
WAITING = frozenset({State.QUEUED, State.PAUSED})


def log_of(
    client: Client, id_: str, *, attempt: int | None, worker: int, since: datetime | None = None
) -> Iterator[bytes]:
    """Yield what is in a log now, from a time on."""
    offset = 0
    while True:
        part = client.log(id_, attempt=attempt, worker=worker, offset=offset, since=since)
        if part.skipped:
            yield _gap(part.skipped)
        if part.data:
            yield part.data
        if part.ended or part.next == offset:
            return
        attempt, offset, since = part.attempt, part.next, None


def follow(
    client: Client,
    id_: str,
    *,
    worker: int,
    say: Callable[[str], None],
    show_log: bool = True,
    since: datetime | None = None,
) -> Iterator[bytes]:
    """Yield the log of a job as it is written, attempt by attempt, until the job has ended.

    ``say`` gets a sentence for each wait in between.
    """
    shown = 0
    while True:
        job = _next(client, id_, shown, say)
        if job.attempt <= shown:
            return
        shown = job.attempt
        if show_log:
            for piece in client.follow_log(id_, attempt=shown, worker=worker, since=since):
                yield from _pieces(piece)


def _next(client: Client, id_: str, shown: int, say: Callable[[str], None]) -> Job:
    """Wait for an attempt that was not shown yet, or for the end of the job."""
    said = ""
    for job in _changes(client, id_):
        if job.state in ENDED or (job.attempt > shown and job.state not in WAITING):
            return job
        if job.reason is not None and job.reason.code == BEFORE_A_PASS:
            continue  # over in a moment, and no news
        text = f"{job.state}: {words.note(job)}".removesuffix(": ")
        if text != said and job.state in WAITING:
            say(f"{words.short(id_)} {text}")
            said = text
    raise AssertionError("events never end")


def _changes(client: Client, id_: str) -> Iterator[Job]:
    """Yield the job as it is, then whenever it changes."""
    for event in client.events():
        if event.kind in ("open", "reset"):
            yield client.job(id_).job
        elif isinstance(event.data, Job) and event.data.id == id_:
            yield event.data


def _pieces(piece: LogText) -> Iterator[bytes]:
    if piece.skipped:
        yield _gap(piece.skipped)
    yield piece.text.encode()


def _gap(count: int) -> bytes:
    return f"\n[benchpool: {count} bytes were dropped by the size limit]\n".encode()
