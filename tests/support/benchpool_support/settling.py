"""How a pool comes to rest when nothing happens but what passes decide (R20)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from benchpool_scheduler.core.model import JobId, Snapshot
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after
from benchpool_support.plans import movers, preempts

MOST_ACTING = 5
"""At most so many passes act: who is stopped may claim in the next pass from work of lower rank, so
may those in their turn, and then what that leaves is used."""

PATIENCE = 12
"""After so many passes a pool counts as one that never rests."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What it took.

    Attributes:
        acting: Passes that did something. ``stops``: how often each job was stopped or shrunk.
    """

    acting: int
    stops: Counter[JobId]

    @property
    def complaint(self) -> str:
        """Return what is wrong with it; empty where nothing is."""
        if self.acting >= PATIENCE:
            return f"it does not come to rest in {PATIENCE} passes"
        if self.acting > MOST_ACTING:
            return f"{self.acting} passes act, more than {MOST_ACTING}"
        often = [name for name, times in self.stops.items() if times > 2]
        return f"jobs {', '.join(often)} are stopped more than twice" if often else ""


def settle(pool: Snapshot) -> Settled:
    """Run passes until one does nothing."""
    acting, stops = 0, Counter[JobId]()
    while acting < PATIENCE:
        plan = decide(pool)
        later = after(pool, plan)
        if later == pool:
            break
        acting += 1
        stops.update({command.job for command in preempts(plan)} - movers(plan))
        pool = later
    return Settled(acting, stops)
