"""Room is kept for the first large job that is blocked, and who may start before it (R14).

Door: ``backfill.Backfill``.
"""
