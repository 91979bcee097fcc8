"""Bench of this notebook server: its activity, and the release of its GPUs.

``bench_watch`` monitors it. The other modules read the activity of kernels and terminals.
"""
