"""Runs passes over a case; between them every command takes effect at once (formats, section 1)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from benchpool_scheduler.core.model import Activity, Job, JobId, Plan, Preempt, Snapshot, Start
from benchpool_scheduler.core.plan import decide


@dataclass(slots=True)
class Played:
    """A case after some passes.

    Attributes:
        preempted: Jobs that were stopped or lost workers on the way.
        moved: Jobs that kept running on other nodes.
        slowest_ms: The longest pass.
        restless: The first pass in which something changed although nothing should; None so far.
    """

    snapshot: Snapshot
    plan: Plan | None = None
    passes: int = 0
    preempted: set[JobId] = field(default_factory=set)
    moved: set[JobId] = field(default_factory=set)
    slowest_ms: float = 0.0
    restless: int | None = None


def play(snapshot: Snapshot, rounds: int) -> Played:
    """Run ``rounds`` passes."""
    played = Played(snapshot)
    for _ in range(rounds):
        step(played)
    return played


def keep_still(played: Played, passes: int) -> None:
    """Run further passes and note whether one of them does anything (R20)."""
    for _ in range(passes):
        before = played.snapshot
        step(played)
        if played.snapshot != before and played.restless is None:
            played.restless = played.passes


def step(played: Played) -> None:
    """Run one pass and apply its commands."""
    begin = time.perf_counter()
    plan = decide(played.snapshot)
    played.slowest_ms = max(played.slowest_ms, (time.perf_counter() - begin) * 1000)
    played.plan = plan
    played.passes += 1
    moved = {c.job for c in plan.commands if isinstance(c, Start) and c.job in c.after}
    played.moved |= moved
    played.preempted |= {c.job for c in plan.commands if isinstance(c, Preempt)} - moved
    played.snapshot = after(played.snapshot, plan)


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the snapshot in which the commands of a plan have taken effect.

    Only a start that waits for a job which is terminating in the case itself stays a promise:
    such jobs stay terminating.

        >>> from benchpool_scheduler.core.model import Node, NodeName, GpuId, Project, ProjectName
        >>> pool = Snapshot(
        ...     nodes=(Node(NodeName("n"), (GpuId("g"),)),),
        ...     projects=(Project(ProjectName("p")),),
        ...     jobs=(Job(JobId("j"), ProjectName("p")),),
        ... )
        >>> after(pool, decide(pool)).jobs[0].activity.value
        'running'
    """
    jobs = {job.id: job for job in snapshot.jobs}
    for command in plan.commands:
        if isinstance(command, Preempt):
            jobs[command.job] = _preempted(jobs[command.job], command)
        else:
            jobs[command.job] = _started(jobs[command.job], command, jobs.values())
    return replace(snapshot, jobs=tuple(jobs.values()))


def _preempted(job: Job, command: Preempt) -> Job:
    held = tuple(worker for worker in job.held if worker not in command.workers)
    if held:
        return replace(job, held=held)
    return replace(
        job,
        held=(),
        activity=Activity.QUEUED,
        ran_s=0.0,
        since_checkpoint_s=None,
        preemptions_last_hour=job.preemptions_last_hour + 1,
    )


def _started(job: Job, command: Start, jobs: Iterable[Job]) -> Job:
    leaving = {other.id for other in jobs if other.activity is Activity.TERMINATING}
    if leaving & set(command.after):
        return replace(job, earmarked=True, promised=command.workers)
    return replace(
        job,
        held=(*job.held, *command.workers),
        activity=Activity.RUNNING,
        earmarked=False,
        promised=(),
        ran_s=job.ran_s if job.held else 0.0,
        since_checkpoint_s=job.since_checkpoint_s if job.held else None,
    )
