"""Run passes over a case; every command takes effect before the next pass (formats, section 1)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from benchpool_scheduler.core.cluster.invariants import violations
from benchpool_scheduler.core.effects import after as after
from benchpool_scheduler.core.model import JobId, Plan, Preempt, Snapshot, Start
from benchpool_scheduler.core.plan import decide


@dataclass(slots=True)
class Played:
    """State of a case after some passes.

    Attributes:
        preempted: Jobs that were stopped or lost workers.
        moved: Jobs that kept running on other nodes.
        slowest_ms: Duration of the longest pass, in milliseconds.
        restless: The first pass with a change although none was due; None so far.
        broken: Effects of the first plan that breaks a rule; empty so far.
    """

    snapshot: Snapshot
    plan: Plan | None = None
    passes: int = 0
    preempted: set[JobId] = field(default_factory=set)
    moved: set[JobId] = field(default_factory=set)
    slowest_ms: float = 0.0
    restless: int | None = None
    broken: tuple[str, ...] = ()


def play(snapshot: Snapshot, rounds: int) -> Played:
    """Run ``rounds`` passes."""
    played = Played(snapshot)
    for _ in range(rounds):
        step(played)
    return played


def keep_still(played: Played, passes: int) -> None:
    """Run further passes and record whether one of them changes anything (R20)."""
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
    if not played.broken:
        found = violations(played.snapshot, plan)
        played.broken = tuple(f"pass {played.passes} violates {one}" for one in found)
    moved = {c.job for c in plan.commands if isinstance(c, Start) and c.job in c.after}
    played.moved |= moved
    played.preempted |= {c.job for c in plan.commands if isinstance(c, Preempt)} - moved
    played.snapshot = after(played.snapshot, plan)
