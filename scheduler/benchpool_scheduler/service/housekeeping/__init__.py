"""What is done every few seconds or after each pass: looks at machines and Hub, cleaning, audits.

Doors: ``slow_timer.Housekeeping``, ``auditor.Auditor``.
"""
