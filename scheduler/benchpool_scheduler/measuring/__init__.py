"""Times the product on pools of fixed shape and work (``benchpool bench``; formats, section 3).

``shapes`` and ``crowded`` build pools in memory, ``timing`` runs the decision core alone over
them in a fresh process, ``report`` prints. ``admissions`` drives the whole service. What is
measured is the product's own code; nothing here decides anything.
"""

from benchpool_scheduler.measuring.report import run_shape

__all__ = ["run_shape"]
