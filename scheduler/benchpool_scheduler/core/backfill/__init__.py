"""Reservation for the first large blocked job, and backfill before it (R14).

Entry point: ``backfill.Backfill``.
"""
