"""Run recorded workloads through the decision core in virtual time (``benchpool replay``).

The policy ``guaranteed`` is the product's own core and gets only the facts that the service would
have. Run times stay hidden until a job ends. ``trace`` reads and selects, ``quotas`` divides the
pool, ``engine`` keeps the clock, ``guaranteed`` and ``baselines`` decide, ``floors`` computes
bounds for any scheduler, ``summary`` and ``report`` present the results.
"""

from benchpool_scheduler.simulation.replay.report import ReplayOptions, run

__all__ = ["ReplayOptions", "run"]
