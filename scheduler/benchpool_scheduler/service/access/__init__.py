"""Who asks, and what that caller may see and do.

Doors: ``caller.Caller``, the questions in ``rights``, the projects of a caller in ``membership``.
"""
