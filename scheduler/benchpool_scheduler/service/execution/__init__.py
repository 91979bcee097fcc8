"""Passes, starts and stops of workers, worker events, and recovery after a crash.

Entry points: ``passes.Passes``, ``actions.Actions``, ``watching.Watcher``, ``recovery.recover``.
"""
