"""Following a job to its end: what it writes through all attempts, and what it becomes between."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.contract import ENDED, Job, LogText, State

WAITING = frozenset({State.QUEUED, State.PAUSED})
_BEFORE_A_PASS = "next-pass"


def waits(job: Job) -> bool:
    """Tell whether a job waits for longer than the next pass, which comes in a moment."""
    before_a_pass = job.reason is not None and job.reason.code == _BEFORE_A_PASS
    return job.state in WAITING and not before_a_pass


def follow(
    client: Client, id_: str, *, worker: int = 0, log: bool = True, since: datetime | None = None
) -> Iterator[Job | LogText]:
    """Yield the log of a worker as it is written, and the job whenever it changes in between.

    The last that comes is the job when it has ended, or its last attempt's log.

    Args:
        log: False for the job alone.
        since: The log from this time on.
    """
    shown = 0
    while True:
        for job in changes(client, id_):
            yield job
            if job.state in ENDED or (job.attempt > shown and job.state not in WAITING):
                break
        if job.attempt <= shown:
            return
        shown = job.attempt
        if log:
            yield from client.follow_log(id_, attempt=shown, worker=worker, since=since)


def changes(client: Client, id_: str) -> Iterator[Job]:
    """Yield the job as it is, then whenever it changes."""
    for event in client.events():
        if event.kind in ("open", "reset"):
            yield client.job(id_).job
        elif isinstance(event.data, Job) and event.data.id == id_:
            yield event.data
