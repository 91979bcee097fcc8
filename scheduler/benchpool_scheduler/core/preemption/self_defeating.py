"""Claims that cost the claimant's own project more than they bring (R17, R20)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.model import JobId, Preempt
from benchpool_scheduler.core.preemption.commands import PreemptCommands

MOST_RENOUNCED = 8
"""Limit on jobs whose claims are found to bring nothing. Each costs another pass or two."""

Renounced = dict[int, str]
"""Why a job preempts no other job, by its age (R22)."""

COSTS_ITS_PROJECT = "preempting others would stop a job of its project that ranks above it"
"""Why such a claim is not made, for the reason of the waiting job (R22)."""


def self_defeating(
    jobs: Mapping[JobId, JobInfo],
    beyond_quota: Iterable[tuple[JobInfo, int]],
    preempts: PreemptCommands,
) -> Renounced:
    """Return why claims beyond quota are not made that cost their own project more, by age (R17).

    Projects give whole jobs, so that a paying project may fall below its quota. Its waiting jobs
    then claim in their turn. If that stops a job of the first claimant's project that ranks above
    the claimant, no job gains, and the cycle would repeat (R20).

    Args:
        jobs: All jobs, by ID.
        beyond_quota: Jobs that preempted other jobs without being within quota, each with the
            number of earlier commands.
        preempts: Preempt commands of this pass, in the order of their decisions.
    """
    commands = [*preempts.values()]
    return {
        info.age: COSTS_ITS_PROJECT
        for info, before in beyond_quota
        if any(_costs(info, jobs, command) for command in commands[before:])
    }


def _costs(info: JobInfo, jobs: Mapping[JobId, JobInfo], command: Preempt) -> bool:
    """Return whether another project's claim stops a higher-ranked job of this project."""
    if command.rule != "R15" or command.claimant is None:
        return False
    mine, victim = info.branch.index, jobs[command.job]
    return (
        victim.branch.index == mine
        and jobs[command.claimant].branch.index != mine
        and victim.rank > info.rank
    )
