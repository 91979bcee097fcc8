"""Which claims cost the claimant's own project more than they bring (R17, R20)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import JobId, Preempt


def self_defeating(
    jobs: Mapping[JobId, JobInfo],
    beyond_quota: Iterable[tuple[JobInfo, int]],
    preempts: Sequence[Preempt],
) -> set[int]:
    """Return the ages of jobs whose claims beyond quota cost their own project more (R17).

    Projects give whole jobs, so one that pays may come to lie below its quota. What waits there
    claims in its turn. Where that stops a job of the first claimant's own project that goes before
    the claimant, nobody was served, and the same would begin again (R20).

    Args:
        jobs: All jobs, by id.
        beyond_quota: Jobs that made others give way, without being within quota, and how many of
            the commands had been given by then.
        preempts: Who gives way in this pass, in the order in which that was decided.
    """
    return {
        info.age
        for info, before in beyond_quota
        if any(_costs(info, jobs, command) for command in preempts[before:])
    }


def _costs(info: JobInfo, jobs: Mapping[JobId, JobInfo], command: Preempt) -> bool:
    """Tell whether another project's claim stops a job that goes before this one in its project."""
    if command.rule != "R15" or command.claimant is None:
        return False
    mine, victim = info.branch.index, jobs[command.job]
    return (
        victim.branch.index == mine
        and jobs[command.claimant].branch.index != mine
        and victim.rank > info.rank
    )
