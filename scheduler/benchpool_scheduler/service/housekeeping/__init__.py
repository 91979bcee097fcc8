"""Periodic work and work after each pass: machines, Hub, retention, audits.

Entry points: ``slow_timer.Housekeeping``, ``auditor.Auditor``.
"""
