"""Messages of ``benchpool results`` when there is nothing to fetch."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import ENDED, JobDetail
from benchpool_scheduler.contract.jobs import NOT_DELIVERED


def nothing_fetched(detail: JobDetail, output_dir: str | None, now: datetime) -> str:
    """Return why nothing was fetched, and where the results are, if known.

    Args:
        output_dir: Results folder named by the submission.
    """
    job = detail.job
    if gone := phrases.no_longer_kept(detail.kept, "results", now):
        return gone
    if job.state not in ENDED:
        return f"There are no results yet: the job is {job.state}. They arrive after it has ended."
    if not detail.attempts:
        return "There are no results: the job never ran."
    if job.reason is not None and job.reason.code == NOT_DELIVERED:
        return f"{job.reason.text} {job.reason.remedy}"
    if output_dir is None:
        return "There is nothing to fetch: the job was sent without a folder for its results."
    if Path(output_dir).is_dir():
        return f"There is nothing to fetch: the results are in {output_dir}."
    return (
        f"There is nothing to fetch. The results go to {output_dir} on the machine that the job was"
        " sent from. That folder is created only if the job leaves results."
    )
