"""How many GPUs a recorded workload would have needed: in one pool, and in static shares.

Enough is the smallest number with which 95 % of the jobs would have waited at most so long. It is
found by replaying the same jobs in pools of several sizes, by halving: between the largest job and
the most GPUs that would be busy at once if nobody waited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.accounting.percentiles import percentile
from benchpool_scheduler.core.model import Policy
from benchpool_scheduler.simulation.replay.baselines import Static
from benchpool_scheduler.simulation.replay.engine import (
    Costs,
    Decider,
    Meter,
    ReplayClock,
    Run,
    play,
)
from benchpool_scheduler.simulation.replay.guaranteed import Guaranteed
from benchpool_scheduler.simulation.replay.pools import ReplayPool
from benchpool_scheduler.simulation.replay.trace import TraceJob

PART = 95
"""In percent: so many of the jobs wait at most so long."""


@dataclass(frozen=True, slots=True)
class Enough:
    """What would have been enough.

    Attributes:
        pool: GPUs of one pool that is shared as this one is. ``static``: GPUs by project, where
            each has a fixed share of its own.
    """

    pool: int
    static: Mapping[str, int]


def enough(
    jobs: Sequence[TraceJob],
    quotas: Mapping[str, int],
    policy: Policy,
    costs: Costs,
    wait_s: float,
) -> Enough:
    """Find what would have been enough for these jobs.

    Args:
        jobs: By submission, at least one. ``quotas``: of their projects; others have none.
        wait_s: What 95 % of the jobs may wait, pauses and restarts included.

    >>> two = [TraceJob(n, 0.0, 100.0, 1, p) for n, p in enumerate(("a", "b"))]
    >>> enough(two, {}, Policy(), Costs(), 10.0)
    Enough(pool=2, static={'a': 1, 'b': 1})
    >>> turns = [TraceJob(0, 0.0, 100.0, 1, "a"), TraceJob(1, 200.0, 100.0, 1, "b")]
    >>> enough(turns, {}, Policy(), Costs(), 10.0)
    Enough(pool=1, static={'a': 1, 'b': 1})
    """
    projects = dict.fromkeys(job.project for job in jobs)

    def pooled(runs: Sequence[Run], gpus: int) -> Decider:
        shares = {name: quotas.get(name, 0) for name in projects}
        return Guaranteed(ReplayPool(1, gpus), shares, policy)

    def alone(runs: Sequence[Run], gpus: int) -> Decider:
        return Static(ReplayPool(1, gpus), {runs[0].job.project: gpus}, runs)

    own = {name: [job for job in jobs if job.project == name] for name in projects}
    return Enough(
        pool=_least(jobs, pooled, costs, wait_s),
        static={name: _least(those, alone, costs, wait_s) for name, those in own.items()},
    )


def _least(
    jobs: Sequence[TraceJob],
    decider: Callable[[Sequence[Run], int], Decider],
    costs: Costs,
    wait_s: float,
) -> int:
    """Return the fewest GPUs with which these jobs wait no longer."""
    low, high = max(job.gpus for job in jobs), most_at_once(jobs)
    while low < high:
        middle = (low + high) // 2
        runs = [Run.of(index, job, 1) for index, job in enumerate(jobs)]
        play(runs, decider(runs, middle), ReplayClock(costs, Meter(jobs[0].submit_s, None)))
        waits = sorted(run.wait_s for run in runs)
        low, high = (low, middle) if percentile(waits, PART) <= wait_s else (middle + 1, high)
    return high


def most_at_once(jobs: Sequence[TraceJob]) -> int:
    """Return the most GPUs that would be busy at once if no job waited.

    >>> most_at_once([TraceJob(0, 0.0, 10.0, 4, "a"), TraceJob(1, 10.0, 5.0, 2, "a")])
    4
    """
    changes = [(job.submit_s + job.duration_s, -job.gpus) for job in jobs]
    changes += [(job.submit_s, job.gpus) for job in jobs]
    held = most = 0
    for _, gpus in sorted(changes):
        held += gpus
        most = max(most, held)
    return most
