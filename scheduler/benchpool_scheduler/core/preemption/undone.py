"""Claims that their victims would undo in the next pass (R17, R20).

A lower job that starts on a free GPU may take its project beyond its due, and so permit a claim
against a larger job of that project. If that job may reclaim the GPUs from the claimant, the two
stop each other until the hourly bound of preemptions (R19). No job gains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.effects import apply, unsaved
from benchpool_scheduler.core.jobs.amounts import NOTHING
from benchpool_scheduler.core.model import Command, JobId, Plan, Preempt
from benchpool_scheduler.core.preemption.candidates import VictimCandidates
from benchpool_scheduler.core.preemption.commands import PreemptCommands
from benchpool_scheduler.core.preemption.self_defeating import Renounced

UNDONE = "a job that it may preempt could take the GPUs back at once"
"""Why such a claim is not made, for the reason of the waiting job (R22)."""

Claims = Mapping[JobId, frozenset[JobId]]
"""Victims by claimant."""


def doubtful_claims(
    state: ClusterState, candidates: VictimCandidates, preempts: PreemptCommands
) -> Claims:
    """Return the claims that stop a job whose project has running jobs of lower priority.

    Only claims of another project count. Other victims have no lower jobs to stop in their turn.
    """
    found: dict[JobId, frozenset[JobId]] = {}
    for command in preempts.values():
        if command.rule != "R15" or command.claimant is None:
            continue
        claimant, victim = state.jobs[command.claimant], state.jobs[command.job]
        if (
            claimant.branch is not victim.branch
            and len(command.workers) == len(victim.job.held)
            and candidates.held_below(victim) != NOTHING
        ):
            found[claimant.job.id] = found.get(claimant.job.id, frozenset()) | {victim.job.id}
    return found


def undone_claims(
    state: ClusterState,
    commands: Iterable[Command],
    claims: Claims,
    now_s: float,
    following: Callable[[], Plan],
) -> Renounced:
    """Return why claimants that one of their victims stops in the next pass wait, by age (R22).

    Args:
        state: Without changes of a pass. It is unchanged afterwards.
        commands: Commands of this pass, taken as done.
        following: Returns the plan of a pass over the state, and leaves no changes.
    """
    if not claims:
        return {}
    with _done(state, commands, now_s):
        return {
            state.jobs[command.job].age: UNDONE
            for command in following().commands
            if isinstance(command, Preempt)
            and command.claimant in claims.get(command.job, ())
            and len(command.workers) == len(state.jobs[command.job].job.held)
        }


@contextmanager
def _done(state: ClusterState, commands: Iterable[Command], now_s: float) -> Iterator[None]:
    """Let commands take effect in the state, and restore its jobs afterwards."""
    releasing = {*state.releasing}
    before = {command.job: state.jobs[command.job].job for command in commands}
    later = dict(before)
    for command in commands:
        later[command.job] = apply(later[command.job], command, now_s, unsaved, releasing)
    try:
        for job in later.values():
            state.put(job)
        yield
    finally:
        for job in before.values():
            state.put(job)
