"""Numbers of a plan, and their comparison with the expectation of its shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from benchpool_scheduler.core.model import Activity, Plan, Preempt, Snapshot, Start


@dataclass(frozen=True, slots=True)
class Tally:
    """The jobs of a plan, counted.

    Attributes:
        started: Jobs that start, immediately or after others have left (R20).
        preempted: Jobs that lose workers and are not resumed elsewhere by the same plan (R18).
        moved: Jobs that lose workers and are resumed elsewhere by the same plan.
        waiting: Queued jobs that get nothing. ``reasons``: their reasons, by code (R22).
        unexplained: Waiting jobs without a reason.
    """

    started: int
    preempted: int
    moved: int
    waiting: int
    reasons: tuple[tuple[str, int], ...]
    unexplained: int

    @property
    def text(self) -> str:
        """Return the main numbers, and those of the others that are not zero.

        >>> Tally(4, 2, 0, 7, (), 0).text
        '4 started, 2 preempted, 7 waiting'
        """
        parts = [f"{self.started} started", f"{self.preempted} preempted"]
        if self.moved:
            parts.append(f"{self.moved} moved")
        parts.append(f"{self.waiting} waiting")
        if self.unexplained:
            parts.append(f"{self.unexplained} without a reason")
        return ", ".join(parts)


def tally(snapshot: Snapshot, plan: Plan) -> Tally:
    """Count the effects of a plan on the jobs of its snapshot.

    A job that is stopped in order to move is in its own ``after``.
    """
    queued = {job.id for job in snapshot.jobs if job.activity is Activity.QUEUED}
    starts = [command for command in plan.commands if isinstance(command, Start)]
    started = {command.job for command in starts} & queued
    moved = {command.job for command in starts if command.job in command.after}
    paying = {command.job for command in plan.commands if isinstance(command, Preempt)}
    waiting = queued - started
    codes = Counter(plan.reasons[job].code.value for job in waiting if job in plan.reasons)
    return Tally(
        started=len(started),
        preempted=len(paying - moved),
        moved=len(moved),
        waiting=len(waiting),
        reasons=tuple(sorted(codes.items())),
        unexplained=len(waiting - plan.reasons.keys()),
    )


Expectation = Callable[[Tally], str | None]
"""Function that returns the expected numbers if a plan differs from them, else None."""


def exactly(*, started: int, preempted: int, waiting: int) -> Expectation:
    """Expect these numbers, no moved job, and a reason for every waiting job."""

    def check(found: Tally) -> str | None:
        numbers = (found.started, found.preempted, found.waiting)
        if numbers == (started, preempted, waiting) and not (found.moved or found.unexplained):
            return None
        return f"expected {Tally(started, preempted, 0, waiting, (), 0).text}"

    return check


def something_starts(waiting: int) -> Expectation:
    """Expect at least one started job, no preempted job, and a reason for every waiting job."""

    def check(found: Tally) -> str | None:
        peaceful = not (found.preempted or found.moved or found.unexplained)
        if peaceful and found.started and found.started + found.waiting == waiting:
            return None
        return f"expected that some of {waiting} start and no job is preempted"

    return check
