"""benchpool on one machine: ``benchpool up``, ``down``, ``doctor`` and ``login-link``.

Starts JupyterHub with its proxy and the scheduler as the Hub's managed service, keeps all state in
one folder, and leaves jobs and notebook servers running when it ends.
"""
