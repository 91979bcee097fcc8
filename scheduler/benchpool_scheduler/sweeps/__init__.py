"""Sweeps as pure decisions: the next values, early stopping, and the end.

No state is kept here. The next step follows from the plan and the table of its trials, so that a
restarted service continues without a difference.
"""
