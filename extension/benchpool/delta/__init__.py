"""Packages of the notebook's Python that its jobs' image lacks: they are sent with the job.

``probe`` asks that Python for them. ``packing`` and ``locking`` turn each into a wheel or a locked
version. ``travelling`` adds them to a draft. The job's runner installs them (``runner.overlay``).
"""
