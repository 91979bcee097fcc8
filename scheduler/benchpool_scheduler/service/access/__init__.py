"""Identity and permissions of callers.

Entry points: ``caller.Caller``, the checks in ``rights``, a caller's projects in ``membership``.
"""
