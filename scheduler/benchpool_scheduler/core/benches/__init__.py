"""Build GPUs: whose quota is what, what is kept free, and the line of who waits (R2, R3).

Door: ``quotas.effective_quota``, ``quotas.keep_free`` and ``line.seats``.
"""
