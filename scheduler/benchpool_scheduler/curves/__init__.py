"""Curves of a job: what it reports of itself over its steps, as one line over all its attempts.

Pure. Its doors are ``points`` (how a point joins a line, and how a line is thinned), ``series``
(all lines of a job), ``figures`` (last, least, greatest and best of a line), ``views`` (lines as
their readers see them) and ``comparison`` (several jobs beside each other).
"""
