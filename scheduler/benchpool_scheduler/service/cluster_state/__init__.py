"""Cluster state for the core, built from the ledger and then kept in step with it.

Entry point: ``state_cache.StateCache``. ``snapshots`` translates records into the core's types.
"""
