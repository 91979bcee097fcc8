"""Following of a job: its log through all attempts, and its state changes between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from benchpool_scheduler.cli import words
from benchpool_scheduler.client import Client, following
from benchpool_scheduler.contract import LogText


def log_of(
    client: Client, id_: str, *, attempt: int | None, worker: int, since: datetime | None = None
) -> Iterator[bytes]:
    """Yield the current content of a log, from a given time on."""
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
    report: Callable[[str], None],
    show_log: bool = True,
    since: datetime | None = None,
) -> Iterator[bytes]:
    """Yield the log of a job as it is written, attempt by attempt, until the job has ended.

    ``report`` gets a sentence for each wait between attempts.
    """
    reported = ""
    for each in following.follow(client, id_, worker=worker, log=show_log, since=since):
        if isinstance(each, LogText):
            reported = ""
            yield from _pieces(each)
        elif following.waits(each):
            text = f"{each.state}: {words.note(each)}".removesuffix(": ")
            if text != reported:
                report(f"{words.short(id_)} {text}")
            reported = text


def _pieces(piece: LogText) -> Iterator[bytes]:
    if piece.skipped:
        yield _gap(piece.skipped)
    yield piece.text.encode()


def _gap(count: int) -> bytes:
    return f"\n[benchpool: {count} bytes were dropped by the size limit]\n".encode()
