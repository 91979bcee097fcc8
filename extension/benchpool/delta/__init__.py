"""Packages that a notebook's Python has and the image of its jobs has not: they go along.

``probe`` asks that Python which they are, ``packing`` and ``locking`` make of each what can travel,
``travelling`` puts it into a draft. The job's runner installs it (``runner.overlay``).
"""
