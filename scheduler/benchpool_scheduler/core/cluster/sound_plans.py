"""Part of a plan that can be carried out if the plan would break a rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.cluster.invariants import Violation, violations
from benchpool_scheduler.core.jobs.tree import Tree
from benchpool_scheduler.core.model import (
    Command,
    JobId,
    Plan,
    Preempt,
    ReasonCode,
    Snapshot,
    WaitReason,
)


@dataclass(frozen=True, slots=True)
class SoundPlan:
    """A plan that breaks no rule.

    Attributes:
        broken: Rules that the original plan would have broken. Empty if the plan is unchanged.
        left_out: Commands that were removed.
    """

    plan: Plan
    broken: tuple[Violation, ...] = ()
    left_out: tuple[Command, ...] = ()


def sound_on(state: ClusterState, plan: Plan) -> SoundPlan:
    """Return the part of a plan that may be applied to the state on which it was made.

    Only the holdings of jobs and the given nodes and projects are read from the state.
    """
    if not plan.commands:
        return SoundPlan(plan)
    jobs = {info.job.id: info.job for running in state.running for info in running}
    jobs |= {command.job: state.jobs[command.job].job for command in plan.commands}
    return without_doubt(Snapshot(state.nodes, (), tuple(jobs.values())), plan, state.tree)


def without_doubt(snapshot: Snapshot, plan: Plan, tree: Tree | None = None) -> SoundPlan:
    """Return a plan without commands that break a rule, and without commands that depend on them.

    Running jobs keep running. A job with a broken command is neither started nor stopped, and no
    job is stopped for it. Every job that waits for this has it as its reason.

    Args:
        tree: The snapshot's projects, if the tree exists already.

    >>> from benchpool_scheduler.core.model import GpuId, JobFacts, Node, NodeName, Project
    >>> from benchpool_scheduler.core.model import ProjectName, Start, Worker
    >>> gpu, jobs = GpuId("g"), [JobFacts(JobId(it), ProjectName("p")) for it in "jkl"]
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("n"), (gpu,)), Node(NodeName("m"), (gpu,))),
    ...     projects=(Project(ProjectName("p")),),
    ...     jobs=tuple(jobs),
    ... )
    >>> on_n, on_m = Worker(NodeName("n"), (gpu,)), Worker(NodeName("m"), (gpu,))
    >>> plan = Plan((Start("j", (on_n,)), Start("k", (on_n,)), Start("l", (on_m,))), {}, {})
    >>> sound = without_doubt(pool, plan)
    >>> [command.job for command in sound.plan.commands], sorted(sound.plan.reasons)
    (['l'], ['j', 'k'])
    """
    first = violations(snapshot, plan, tree)
    if not first:
        return SoundPlan(plan)
    found, kept = first, plan.commands
    while found:
        doubtful = frozenset().union(*(violation.jobs for violation in found))
        sure = tuple(command for command in kept if not _concerns(command, doubtful))
        kept = sure if len(sure) < len(kept) else ()
        found = violations(snapshot, replace(plan, commands=kept), tree)
    left_out = tuple(command for command in plan.commands if command not in kept)
    return SoundPlan(_explained(snapshot, plan, kept, first), first, left_out)


def _concerns(command: Command, jobs: frozenset[JobId]) -> bool:
    return command.job in jobs or (isinstance(command, Preempt) and command.claimant in jobs)


def _explained(
    snapshot: Snapshot, plan: Plan, kept: tuple[Command, ...], broken: tuple[Violation, ...]
) -> Plan:
    """Return the plan with these commands, and a reason for each job that now waits."""
    started = {command.job for command in kept if not isinstance(command, Preempt)}
    meant = {command.job for command in plan.commands if not isinstance(command, Preempt)}
    waiting = {job.id for job in snapshot.jobs if not job.held} & meant - started
    rules = ", ".join(sorted({violation.rule for violation in broken}))
    reason = WaitReason(
        ReasonCode.SET_ASIDE,
        f"waits: the last decision about it would break a rule of the pool ({rules}) and was not "
        "carried out",
        {"rules": rules},
        "nothing to do: the problem is reported to administrators, and the next change tries again",
    )
    return replace(plan, commands=kept, reasons={**plan.reasons, **dict.fromkeys(waiting, reason)})
