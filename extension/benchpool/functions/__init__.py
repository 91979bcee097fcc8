"""Functions as jobs: ``submit(fn, ...)``, ``@remote`` and ``map``.

A function is sent as the code that defines it, found by the same analysis as for cells, and a final
cell that calls it. Nothing is pickled, and the job does not repeat the submission.

``remote_function`` and ``grid`` need only the standard library, since jobs import them too. Entry
point: ``sending``.
"""
