"""Services as pure decisions: how many replicas there are, which is exchanged, when it sleeps.

Nothing is remembered here and nothing is done. What comes next follows from what was asked for,
from the replicas as they are, from what came in, and from the time that is given.
"""
