"""The pool as the core sees it: made from the ledger, then kept in step with it.

Doors: ``state_cache.StateCache``; ``snapshots`` translates records into the core's types.
"""
