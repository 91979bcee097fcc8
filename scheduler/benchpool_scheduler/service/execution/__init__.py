"""Decides and acts: passes, starts and stops of workers, their events, recovery after a crash.

Doors: ``passes.Passes``, ``actions.Actions``, ``watching.Watcher``, ``recovery.recover``.
"""
