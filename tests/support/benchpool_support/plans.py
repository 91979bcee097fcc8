"""Helpers that read a plan and repeat passes until nothing changes."""

from __future__ import annotations

from benchpool_scheduler.core.model import JobId, Plan, Preempt, Snapshot, Start, Worker
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after


def starts(plan: Plan) -> dict[JobId, Start]:
    """Return everything that each job gets, including earmarked places, as one start."""
    found: dict[JobId, Start] = {}
    for command in plan.commands:
        if isinstance(command, Start):
            so_far = found.get(command.job, Start(command.job, ()))
            found[command.job] = Start(
                command.job, so_far.workers + command.workers, so_far.after + command.after
            )
    return found


def preempts(plan: Plan) -> list[Preempt]:
    """Return the preemptions of a plan."""
    return [command for command in plan.commands if isinstance(command, Preempt)]


def movers(plan: Plan) -> set[JobId]:
    """Return the jobs that leave their places and continue at others (R18)."""
    return {name for name, command in starts(plan).items() if name in command.after}


def lost(plan: Plan) -> dict[JobId, tuple[Worker, ...]]:
    """Return the workers that a job loses and does not regain by a move, by job."""
    found: dict[JobId, tuple[Worker, ...]] = {}
    for command in preempts(plan):
        if command.job not in movers(plan):
            found[command.job] = (*found.get(command.job, ()), *command.workers)
    return found


def at_rest(pool: Snapshot, passes: int = 12) -> Snapshot:
    """Return the pool when a pass changes nothing, or after ``passes`` passes."""
    for _ in range(passes):
        before, pool = pool, after(pool, decide(pool))
        if pool == before:
            break
    return pool
