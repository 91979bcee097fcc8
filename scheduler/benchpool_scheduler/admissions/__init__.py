"""Drive the whole service with the mix of Kueue's own performance test (formats, section 3).

``mixes`` are the tables, ``driving`` creates the jobs, ``runtime`` ends them after their time,
``virtual_clock`` is a loop whose time jumps to the next event instead of waiting, ``figures``
counts, ``report`` prints.
"""

from benchpool_scheduler.admissions.report import run

__all__ = ["run"]
