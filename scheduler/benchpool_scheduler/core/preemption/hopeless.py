"""Which jobs need no turn: they lack room, and could claim none (R9, R15)."""

from __future__ import annotations

from typing import Protocol

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.fairness.scheduling_queue import Cursor
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import JobInfo
from benchpool_scheduler.core.preemption.candidates import VictimCandidates


class KeptRoom(Protocol):
    """What is kept for large jobs (R14)."""

    def barred_gpus(self) -> int:
        """Return how many free GPUs are kept."""

    def needs_turn(self, info: JobInfo) -> bool:
        """Tell whether a job has to have its turn all the same."""


def hopeless(
    state: ClusterState, candidates: VictimCandidates, kept: KeptRoom, cursor: Cursor
) -> bool:
    """Tell of a job that lacks GPUs, and could claim none, without trying it out (R9, R15)."""
    info = cursor.info
    asked = info.request.gpus if cursor.workers else info.min_gang.gpus
    free = state.capacity.free(info.requirements) + kept.barred_gpus()
    if not asked or asked <= free * WHOLE_GPU or info.requirements.part:
        return False
    if kept.needs_turn(info) or asked <= state.usage.most_to_claim(info.branch.index):
        return False
    by_youth = state.usage.above_quota(info.branch.index, info.min_gang)
    return not candidates.gives_below(info, by_youth=by_youth)
