"""Runs passes over a case; between them every command takes effect at once (formats, section 1)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from benchpool_scheduler.core.cluster.invariants import violations
from benchpool_scheduler.core.effects import after as after
from benchpool_scheduler.core.model import JobId, Plan, Preempt, Snapshot, Start
from benchpool_scheduler.core.plan import decide


@dataclass(slots=True)
class Played:
    """A case after some passes.

    Attributes:
        preempted: Jobs that were stopped or lost workers on the way.
        moved: Jobs that kept running on other nodes.
        slowest_ms: The longest pass.
        restless: The first pass in which something changed although nothing should; None so far.
        broken: What the first plan that breaks a rule would do; empty so far.
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
    if not played.broken:
        found = violations(played.snapshot, plan)
        played.broken = tuple(f"pass {played.passes} breaks {one}" for one in found)
    moved = {c.job for c in plan.commands if isinstance(c, Start) and c.job in c.after}
    played.moved |= moved
    played.preempted |= {c.job for c in plan.commands if isinstance(c, Preempt)} - moved
    played.snapshot = after(played.snapshot, plan)
