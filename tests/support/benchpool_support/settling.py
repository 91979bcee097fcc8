"""Passes of a pool without events until it comes to rest, for tests of R20.

The state after each plan is checked too: no GPU twice, whole gangs, sums within their bounds.
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
"""Maximum number of passes that act.

A stopped job may preempt work of lower rank in the next pass, and that work may do the same. Then
the remaining GPUs are used.
"""

FEW_ACTING = 5
"""Number of acting passes that suffices for every pool of ``make test``.

Among other pools, one in 50,000 needs six.
"""

PATIENCE = 12
"""Number of passes after which a pool counts as restless."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Result of the passes.

    Attributes:
        acting: Number of passes that acted.
        stops: Number of stops of each job.
        broken: Violations by the first plan that breaks a rule, or none.
    """

    acting: int
    stops: Counter[JobId]
    broken: tuple[str, ...] = ()

    @property
    def complaint(self) -> str:
        """Return the problem found, or an empty string."""
        if self.broken:
            return "; ".join(self.broken)
        if self.acting >= PATIENCE:
            return f"it does not come to rest in {PATIENCE} passes"
        if self.acting > MOST_ACTING:
            return f"{self.acting} passes act, more than {MOST_ACTING}"
        often = [name for name, times in self.stops.items() if times > 2]
        return f"jobs {', '.join(often)} are stopped more than twice" if often else ""


def settle(pool: Snapshot) -> Settled:
    """Run passes until one does nothing or breaks a rule."""
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
    """Return the violations while victims take their time to leave, or none."""
    for _ in range(PATIENCE):
        plan = decide(pool)
        if broken := violations(pool, plan):
            return tuple(map(str, broken))
        later = gone(under_way(pool, plan))
        if later == pool:
            break
        pool = later
    return ()
