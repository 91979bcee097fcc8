"""Runs scheduling cases through the product's own decision core (``benchpool simulate``).

A case is a cluster at an instant, the work in it, and what must come of it. Nothing is simulated
twice: the passes are those of ``core.plan``, only their commands take effect at once.
``cases`` reads, ``passes`` runs, ``outcomes`` compares, ``report`` prints.
"""

from benchpool_scheduler.simulation.report import run, run_shares

__all__ = ["run", "run_shares"]
