"""Number of GPUs that a recorded workload would have needed, in one pool and in static shares.

The result is the smallest number with which 95 % of the jobs wait at most a given time. A bisection
replays the same jobs in pools of several sizes. Its bounds are the largest job and the most GPUs
that would be busy at the same time if no job waited.
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
"""Share of the jobs whose wait must stay within the limit, in percent."""


@dataclass(frozen=True, slots=True)
class Enough:
    """Smallest sufficient numbers of GPUs.

    Attributes:
        pool: GPUs of one pool that is shared like this one. ``static``: GPUs by project, if each
            project has a fixed share of its own.
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
    """Return the smallest numbers of GPUs that suffice for these jobs.

    Args:
        jobs: By submission, at least one. ``quotas``: of their projects; a missing one has none.
        wait_s: Maximum wait of 95 % of the jobs, pauses and restarts included, in seconds.

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
    """Return the fewest GPUs with which the waits of these jobs stay within ``wait_s``."""
    low, high = max(job.gpus for job in jobs), most_at_once(jobs)
    while low < high:
        middle = (low + high) // 2
        runs = [Run.of(index, job, 1) for index, job in enumerate(jobs)]
        play(runs, decider(runs, middle), ReplayClock(costs, Meter(jobs[0].submit_s, None)))
        waits = sorted(run.wait_s for run in runs)
        low, high = (low, middle) if percentile(waits, PART) <= wait_s else (middle + 1, high)
    return high


def most_at_once(jobs: Sequence[TraceJob]) -> int:
    """Return the most GPUs that would be busy at the same time if no job waited.

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
