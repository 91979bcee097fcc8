"""Repetition of a job with the same code, modules, options and image, and a new results folder.

Only the deadline is left out, since it applied to the first run.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath

from msgspec.structs import replace

from benchpool_scheduler import contract
from benchpool_scheduler.contract.run_changes import JobAgain
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.jobs import Jobs
from benchpool_scheduler.service.process.identifiers import new_job_id

_MARK = re.compile(r"-[0-9a-f]{8}$")


async def run_again(
    jobs: Jobs, caller: Caller, job: str, asked: JobAgain
) -> tuple[contract.Job, bool]:
    """Submit a job's submission again; return the job, and whether it is new.

    Errors: NotFound; those of ``Jobs.submit_once``; Refused if its contents are no longer kept.
    """
    first = jobs.detail(caller, job).job
    submission = jobs.submission(caller, first.id)
    key = asked.key or new_job_id()
    folder = submission.output_dir
    after = still_after(first, caller.name)
    same = replace(
        submission,
        key=key,
        output_dir=None if folder is None else beside(folder, key),
        after=after,
        after_any=submission.after_any and bool(after),
        deadline=None,
    )
    try:
        return await jobs.submit_once(caller, same)
    except InvalidInput as refused:
        if refused.code != "missing-objects":
            raise
        raise Refused(
            f"The files of job {first.id[:8]} ({first.name}) are incomplete now, or were uploaded "
            f"by {first.user} and not by you. Nothing was sent. Send it again from its notebook or "
            "folder.",
            code="code-gone",
            numbers=refused.numbers,
        ) from refused


def still_after(first: contract.Job, user: str) -> tuple[str, ...]:
    """Return the dependencies of the first run that have not ended; empty for another user."""
    if first.user != user:
        return ()
    return tuple(it.job for it in first.awaits if it.outcome is None)


def beside(folder: str, key: str) -> str:
    """Return the results folder of the new run, next to that of the first.

    >>> beside("/data/benchpool-results/book-8254c329", "k2")
    '/data/benchpool-results/book-015f7e6b'
    >>> beside("/data/out", "k2")
    '/data/out-015f7e6b'
    """
    path = PurePosixPath(folder)
    mark = hashlib.sha256(key.encode()).hexdigest()[:8]
    return str(path.with_name(f"{_MARK.sub('', path.name)}-{mark}"))
