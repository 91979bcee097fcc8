"""Runs recorded workloads through the decision core in virtual time (``benchpool replay``).

Nothing is simulated twice: the policy ``guaranteed`` is the product's own core, told only what it
would be told in the service; run times stay hidden until a job ends. ``trace`` reads and selects,
``quotas`` divides the pool, ``engine`` keeps the clock, ``guaranteed`` and ``baselines`` decide,
``floors`` says what nobody could beat, ``summary`` and ``report`` tell.
"""

from benchpool_scheduler.simulation.replay.report import ReplayOptions, run

__all__ = ["ReplayOptions", "run"]
