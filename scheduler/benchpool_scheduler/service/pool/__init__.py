"""Composition root: builds the parts of the service, starts and closes them.

Entry point: ``pool.Pool``.
"""
