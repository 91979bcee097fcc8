"""Sweeps as pure decisions: which values come next, what is stopped early, when it is enough.

Nothing is remembered here. What comes next follows from the plan and from the table of its trials,
so that a service that starts anew goes on as if it had never stopped.
"""
