"""Decisions about external pods; pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.lifecycle.states import TERMINAL, JobState
from benchpool_scheduler.runtime.admitted import AdmittedWorkload

HOLDS_NOTHING = frozenset({JobState.QUEUED, JobState.PAUSED})
"""States in which a job ends when its pods are gone; in other states its workers report the end."""


@dataclass(frozen=True, slots=True)
class AdmissionActs:
    """Decisions of one round.

    Attributes:
        accept: Workloads that become jobs. ``end``: jobs whose pods are gone.
        messages: Text to show on pods that wait for something other than GPUs, by job.
    """

    accept: tuple[AdmittedWorkload, ...]
    end: tuple[str, ...]
    messages: Mapping[str, str]


def decide(workloads: Sequence[AdmittedWorkload], states: Mapping[str, JobState]) -> AdmissionActs:
    """Return the decisions of one round.

    Args:
        states: States of the known jobs of these workloads, and of all unfinished jobs of
            external pods.
    """
    there = {one.job for one in workloads}
    messages: dict[str, str] = {}
    accept = []
    for one in workloads:
        state = states.get(one.job)
        if state is None and one.problem:
            messages[one.job] = one.problem
        elif state is None and one.waiting:
            accept.append(one)
        elif state in TERMINAL and one.waiting:
            messages[one.job] = (
                f"Job {one.job[:8]} has ended ({state}), so it gets no GPU; delete the pod."
            )
    gone = (job for job, state in states.items() if job not in there and state in HOLDS_NOTHING)
    return AdmissionActs(tuple(accept), tuple(gone), messages)
