"""Time the decision core on pools of fixed shape and work (``benchpool bench time``).

``builders`` and ``crowded`` build pools in memory, ``timing`` runs the core over them in a fresh
process, ``report`` prints. The timed code is the product's own. The whole service is driven by
``benchpool_scheduler.admissions``.
"""

from benchpool_scheduler.simulation.shapes.report import run_shape

__all__ = ["run_shape"]
