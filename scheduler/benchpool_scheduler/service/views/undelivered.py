"""Reason of a job whose results were not delivered."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.contract.jobs import NOT_DELIVERED, Reason
from benchpool_scheduler.store.records import AttemptRecord
from benchpool_scheduler.worker.records import KEPT, UNDELIVERED


def reason(job: str, attempts: Sequence[AttemptRecord]) -> Reason | None:
    """Return where the results of a succeeded job are, or None if they were delivered.

    Args:
        job: The job's ID.
    """
    workers = attempts[-1].workers if attempts else ()
    found = [worker.text for worker in workers if UNDELIVERED in (worker.text or "")]
    if not found or found[0] is None:
        return None
    message = found[0][found[0].index(UNDELIVERED) :]
    text = f"{message[:1].upper()}{message[1:].rstrip('.')}."
    return Reason(NOT_DELIVERED, text, {}, _remedy(job[:8], message))


def _remedy(id_: str, message: str) -> str:
    if message.endswith(KEPT):
        return f"Fetch them with `benchpool results {id_} --to FOLDER`."
    if "still in" in message:
        return "Copy them from there before the job is removed, or ask an administrator to."
    return "See the end of its log. Correct the cause and send it again."
