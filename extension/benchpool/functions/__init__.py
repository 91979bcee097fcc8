"""Functions as jobs: ``submit(fn, ...)``, ``@remote`` and ``map``.

A function travels as the code that makes it, found by the same analysis as for cells, and a last
cell that calls it. Nothing is pickled, and nothing of the sending is run again in the job.

``remote_function`` and ``grid`` need the standard library alone: jobs import them too. Sending
begins in ``sending``.
"""
