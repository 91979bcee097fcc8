"""Run scheduling cases through the product's own decision core (``benchpool simulate``).

A case holds a cluster at one instant, its jobs, and the expected result. The passes are those of
``core.plan``; the only simulated part is that commands take effect immediately. ``cases`` reads,
``passes`` runs, ``outcomes`` compares, ``report`` prints.
"""

from benchpool_scheduler.simulation.report import run, run_shares

__all__ = ["run", "run_shares"]
