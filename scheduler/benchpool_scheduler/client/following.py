"""Following of a job to its end: its log through all attempts, and its state changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.contract import ENDED, Job, LogText, State

WAITING = frozenset({State.QUEUED, State.PAUSED})
_BEFORE_A_PASS = "next-pass"


def waits(job: Job) -> bool:
    """Return whether a job waits for longer than the next pass, which is imminent."""
    before_a_pass = job.reason is not None and job.reason.code == _BEFORE_A_PASS
    return job.state in WAITING and not before_a_pass


def follow(
    client: Client, id_: str, *, worker: int = 0, log: bool = True, since: datetime | None = None
) -> Iterator[Job | LogText]:
    """Yield the log of a worker as it is written, and the job at each change in between.

    The last item is the ended job, or the log of its last attempt.

    Args:
        log: False for the job alone.
        since: Start time of the log.
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
    """Yield the current job, and the job again at each change."""
    for event in client.events():
        if event.kind in ("open", "reset"):
            yield client.job(id_).job
        elif isinstance(event.data, Job) and event.data.id == id_:
            yield event.data
