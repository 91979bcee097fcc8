"""Schedules as pure decisions: when a submission is sent again, what is made up for, what skipped.

Nothing is remembered here. What comes next follows from what was asked for and from the table of
its times so far, so that a service that starts anew goes on where it was.
"""
