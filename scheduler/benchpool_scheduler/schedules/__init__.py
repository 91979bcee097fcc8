"""Schedules as pure decisions: the times at which a submission is repeated, made up for or skipped.

No state is kept here. The next step follows from the request and the table of its times so far, so
that a restarted service continues where it stopped.
"""
