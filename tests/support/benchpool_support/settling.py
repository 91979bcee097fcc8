"""How a pool comes to rest when nothing happens but what passes decide (R20).

The state after each plan is judged too: no GPU twice, gangs whole, sums within their bounds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from benchpool_scheduler.core.cluster.invariants import violations
from benchpool_scheduler.core.model import JobId, Snapshot
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after
from benchpool_support.leaving import gone, under_way
from benchpool_support.plans import movers

MOST_ACTING = 7
"""At most so many passes act: who is stopped may claim in the next pass from work of lower rank, so
may those in their turn, and then what that leaves is used."""

FEW_ACTING = 5
"""So many suffice for every pool that ``make test`` draws; of others one in 50,000 needs six."""

PATIENCE = 12
"""After so many passes a pool counts as one that never rests."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What it took.

    Attributes:
        acting: Passes that did something. ``stops``: how often each job was stopped.
        broken: What the first plan that breaks a rule would do; empty where none does.
    """

    acting: int
    stops: Counter[JobId]
    broken: tuple[str, ...] = ()

    @property
    def complaint(self) -> str:
        """Return what is wrong with it; empty where nothing is."""
        if self.broken:
            return "; ".join(self.broken)
        if self.acting >= PATIENCE:
            return f"it does not come to rest in {PATIENCE} passes"
        if self.acting > MOST_ACTING:
            return f"{self.acting} passes act, more than {MOST_ACTING}"
        often = [name for name, times in self.stops.items() if times > 2]
        return f"jobs {', '.join(often)} are stopped more than twice" if often else ""


def settle(pool: Snapshot) -> Settled:
    """Run passes until one does nothing, or breaks a rule."""
    acting, stops = 0, Counter[JobId]()
    while acting < PATIENCE:
        plan = decide(pool)
        if broken := violations(pool, plan):
            return Settled(acting, stops, tuple(map(str, broken)))
        later = after(pool, plan)
        if later == pool:
            break
        acting += 1
        held = {job.id for job in pool.jobs if job.held}
        kept = {job.id for job in later.jobs if job.held} | movers(plan)
        stops.update(held - kept)
        pool = later
    return Settled(acting, stops)


def broken_on_the_way(pool: Snapshot) -> tuple[str, ...]:
    """Return what breaks a rule while victims take their time to leave; nothing where all holds."""
    for _ in range(PATIENCE):
        plan = decide(pool)
        if broken := violations(pool, plan):
            return tuple(map(str, broken))
        later = gone(under_way(pool, plan))
        if later == pool:
            break
        pool = later
    return ()
