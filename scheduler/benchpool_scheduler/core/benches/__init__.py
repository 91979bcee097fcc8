"""Build GPUs: quotas, GPUs kept free, and the queue for them (R2, R3).

Entry points: ``quotas.effective_quota``, ``quotas.keep_free`` and ``line.seats``.
"""
