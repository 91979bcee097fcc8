"""Transitions of jobs, as changes in a unit of work, and the texts about them.

Entry point: the functions in ``transitions``. No code here waits or acts.
"""
