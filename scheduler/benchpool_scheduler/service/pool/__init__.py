"""The composition root: puts the rooms together, starts and ends them.

Door: ``pool.Pool``.
"""
