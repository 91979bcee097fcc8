"""The recorded history as a workload for replays: ended jobs as rows of a trace.

A row holds facts that scheduling does not change: the submission time, the run time and the number
of GPUs. The run time is the sum of all attempts minus the progress that preemptions cost. Waiting
time is not part of it.

Left out are jobs that never started, jobs that have not ended, and pauses by users, whose length
cannot be replayed. Jobs whose records were removed by age stay in the history as long as their use
is kept (``store.past_jobs``).
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.hours_used import held_by
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.simulation.replay.engine import Costs
from benchpool_scheduler.simulation.replay.trace import TraceJob
from benchpool_scheduler.store.past_jobs import PaidTo, PastJob, PastJobs
from benchpool_scheduler.store.records import JobRecord

DAY_S = 24 * 3600.0
COLUMNS = (
    *("submit_s", "duration_s", "gpus", "project", "user", "workers", "priority"),
    "time_limit_s",
)


@dataclass(frozen=True, slots=True)
class History:
    """Jobs that ended within a period before now.

    Attributes:
        jobs: Jobs in order of submission; times count from the first submission.
        begun: Time of the first submission, in epoch seconds.
        costs: Cost of one preemption: the policy's restart cost, and the mean progress that the
            preemptions of these jobs lost.
    """

    jobs: tuple[TraceJob, ...]
    costs: Costs
    begun: float = 0.0


class RecordedHistory:
    """Recorded history, readable by administrators.

    Attributes:
        past: Jobs whose records were removed.
    """

    def __init__(self, ledger: Ledger, observed: SchedulerState, past: PastJobs) -> None:
        self._ledger = ledger
        self._observed = observed
        self.past = past

    async def read(self, caller: Caller, days: float) -> str:
        """Return the jobs that ran and ended in the last ``days`` as a trace (formats, section 2).

        Errors: Forbidden for non-administrators.
        """
        rights.require_admin(caller, "read the recorded history")
        return as_csv((await self.of(days)).jobs)

    async def of(self, days: float) -> History:
        """Return the jobs that ran and ended in the last ``days``; see the module."""
        restart_s = self._observed.now.configuration.policy.restart_s
        now = self._observed.settings.clock.now()
        return await history(self._ledger, now, days, restart_s, self.past)


async def history(
    ledger: Ledger, now: float, days: float, restart_s: float, past: PastJobs | None = None
) -> History:
    """Return the jobs that ran and ended in the last ``days``; see the module.

    Records of ended jobs no longer change, so a thread reads them outside the event loop.

    Args:
        now: Epoch seconds.
        restart_s: Cost of one restart by the policy in force, in seconds.
        past: Jobs whose records were removed.
    """
    records, since = list(ledger.jobs()), now - days * DAY_S

    def read() -> History:
        known = {
            it.id: past_job(ledger, it)
            for it in records
            if (it.ended or 0.0) >= since and SELF_TEST not in it.spec.tags
        }
        gone = () if past is None else past.read(since)
        return _history([*(it for it in gone if it.id not in known), *known.values()], restart_s)

    return await asyncio.to_thread(read)


def past_job(ledger: Ledger, record: JobRecord) -> PastJob:
    """Return the summary of an ended job that is kept when its record is removed."""
    return PastJob(
        id=record.id,
        submitted=record.in_line_since,
        ended=record.ended or 0.0,
        ran_s=sum(
            attempt.ended - attempt.started
            for attempt in ledger.attempts(record.id)
            if attempt.started is not None and attempt.ended is not None
        ),
        # Recorded as GPU-seconds of unsaved progress plus one restart (R18).
        lost_s=tuple(
            it.lost_gpu_s / max(1, it.gpus)
            for it in ledger.preemptions(record.id)
            if it.unsaved_gpu_s is None
        ),
        unsaved_s=tuple(
            it.unsaved_gpu_s / max(1, it.gpus)
            for it in ledger.pauses(record.id)
            if it.unsaved_gpu_s is not None
        ),
        gpus=record.spec.total_gpus,
        project=record.project,
        user=record.user,
        workers=record.spec.workers,
        priority=record.spec.priority,
        time_limit_s=record.spec.time_limit_s,
        held=tuple(held_by(ledger.attempts(record.id))),
        started=record.started,
        paid=tuple(
            PaidTo(
                it.at,
                None if claimant is None else claimant.user,
                None if claimant is None else claimant.project,
            )
            for it in ledger.preemptions(record.id)
            for claimant in [None if it.claimant is None else ledger.job(it.claimant)]
        ),
    )


def _history(ended: list[PastJob], restart_s: float) -> History:
    ended.sort(key=lambda job: (job.submitted, job.id))
    lost = [lost_s for job in ended for lost_s in _lost_s(job, restart_s)]
    rows = tuple(
        row
        for line, job in enumerate(ended, start=2)
        if (row := _row(job, line, ended[0].submitted, restart_s)) is not None
    )
    mean_lost_s = sum(lost) / len(lost) if lost else 0.0
    return History(rows, Costs(restart_s, mean_lost_s), ended[0].submitted if ended else 0.0)


def as_csv(jobs: Iterable[TraceJob]) -> str:
    """Return the jobs as a trace for ``benchpool replay``; times are rounded to 0.1 s."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for job in jobs:
        writer.writerow(
            (
                round(job.submit_s, 1),
                round(job.duration_s, 1),
                job.gpus,
                job.project,
                job.user,
                job.workers,
                job.priority,
                job.time_limit_s,
            )
        )
    return text.getvalue()


def _row(job: PastJob, line: int, zero: float, restart_s: float) -> TraceJob | None:
    if job.ran_s <= 0:
        return None
    useful_s = job.ran_s - sum(_lost_s(job, restart_s))
    return TraceJob(
        line=line,
        submit_s=job.submitted - zero,
        duration_s=max(1.0, useful_s),
        gpus=job.gpus,
        project=job.project,
        user=job.user,
        workers=job.workers,
        priority=job.priority,
        time_limit_s=job.time_limit_s,
    )


def _lost_s(job: PastJob, restart_s: float) -> Iterator[float]:
    """Yield the progress that each pause of a job cost, in seconds of its run time."""
    yield from job.unsaved_s
    for lost_s in job.lost_s:
        yield max(0.0, lost_s - restart_s)
