"""What is to be done about pods of others: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.lifecycle.states import TERMINAL, JobState
from benchpool_scheduler.runtime.admitted import AdmittedWorkload

HOLDS_NOTHING = frozenset({JobState.QUEUED, JobState.PAUSED})
"""States whose job ends when its pods are gone; the others hear it of their workers."""


@dataclass(frozen=True, slots=True)
class AdmissionActs:
    """What is to be done.

    Attributes:
        accept: Workloads that become jobs. ``end``: jobs whose pods are gone.
        say: What is to be read on pods that wait for something else than GPUs, by job.
    """

    accept: tuple[AdmittedWorkload, ...]
    end: tuple[str, ...]
    say: Mapping[str, str]


def decide(workloads: Sequence[AdmittedWorkload], states: Mapping[str, JobState]) -> AdmissionActs:
    """Return what is to be done.

    Args:
        states: Of the jobs of these workloads, where there are any, and of all jobs of pods that
            have not ended.
    """
    there = {one.job for one in workloads}
    say: dict[str, str] = {}
    accept = []
    for one in workloads:
        state = states.get(one.job)
        if state is None and one.problem:
            say[one.job] = one.problem
        elif state is None and one.waiting:
            accept.append(one)
        elif state in TERMINAL and one.waiting:
            say[one.job] = (
                f"Job {one.job[:8]} has ended ({state}), so it gets no GPU; delete the pod."
            )
    gone = (job for job, state in states.items() if job not in there and state in HOLDS_NOTHING)
    return AdmissionActs(tuple(accept), tuple(gone), say)
