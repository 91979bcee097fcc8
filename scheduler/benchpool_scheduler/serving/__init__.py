"""Services as pure decisions: number of replicas, rolling updates, sleep.

No state is kept here. The next step follows from the request, the current replicas, the traffic and
the given time.
"""
