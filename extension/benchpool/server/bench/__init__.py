"""The bench below this notebook server: whether it works, and what becomes of its GPUs.

``bench_watch`` looks after it; the other modules say what kernels and terminals do.
"""
