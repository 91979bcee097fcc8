"""Length of a complete trial, learned from the user's similar jobs."""

from __future__ import annotations

from itertools import islice
from statistics import median
from typing import NamedTuple

from benchpool_scheduler.core.forecast.run_times import series_of
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.runtime_estimator import ran_s
from benchpool_scheduler.store.sweep_files import SweepRecord

MOST_READ = 1_000
"""Maximum number of the user's newest jobs that are read."""
MOST_EXAMPLES = 20
"""Maximum number of similar jobs that count, the newest."""


class LearnedLength(NamedTuple):
    """Median run time of similar jobs, in hours, and their number."""

    hours: float
    jobs: int


def learned_length(ledger: Ledger, sweep: SweepRecord) -> LearnedLength | None:
    """Return the length of a complete trial, or None if no similar job has succeeded.

    Similar jobs have the sweep's user, project, GPUs and name, alone or as trials. The pool's
    learned run times are not used here: they also count jobs that failed or were stopped early.
    """
    names = {series_of(sweep.name), series_of(f"{sweep.name} #0")}
    similar = (
        job
        for job in islice(ledger.job_index.newest(users=[sweep.user]), MOST_READ)
        if job.state is JobState.SUCCEEDED
        and job.project == sweep.project
        and job.spec.total_gpus == sweep.submission.total_gpus
        and series_of(job.name) in names
    )
    lengths = [ran_s(ledger.attempts(job.id), None) for job in islice(similar, MOST_EXAMPLES)]
    return LearnedLength(median(lengths) / 3600, len(lengths)) if lengths else None
