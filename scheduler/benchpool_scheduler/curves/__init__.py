"""Curves of a job: its reported values over its steps, as one line over all its attempts.

Pure. Entry points: ``points`` (adds points to a line and thins a line), ``series`` (all lines of a
job), ``figures`` (last, least, greatest and best of a line), ``views`` (lines as API clients see
them) and ``comparison`` (several jobs side by side).
"""
