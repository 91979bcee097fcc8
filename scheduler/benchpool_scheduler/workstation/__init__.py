"""benchpool on one machine: ``benchpool up``, ``down``, ``doctor`` and ``login-link``.

It starts JupyterHub with its proxy, and the scheduler as the Hub's managed service. All state is in
one folder. Jobs and notebook servers continue to run when it ends.
"""
