"""Cluster state that the core keeps between passes.

Entry point: ``cluster_state``. It receives the facts, and a pass tries changes on it.
"""
