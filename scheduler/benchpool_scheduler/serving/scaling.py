"""How many replicas a service is meant to have, by the requests that are in flight."""

from __future__ import annotations

from benchpool_scheduler.serving.facts import ServicePlan

HOLD_S = 60.0
"""Fewer replicas must have been enough for so long before there are fewer."""


def needed(plan: ServicePlan, in_flight: int) -> int:
    """Return how many replicas requests in flight ask for, within the limits; at least one.

    >>> plan = ServicePlan(least=0, most=3, per_replica=4)
    >>> [needed(plan, requests) for requests in (0, 4, 5, 8, 9, 100)]
    [1, 1, 2, 2, 3, 3]
    """
    asked = -(-in_flight // plan.per_replica)
    return min(max(asked, plan.least, 1), plan.most)


def scaled(
    plan: ServicePlan, in_flight: int, now: float, wanted: int, enough_since: float | None
) -> tuple[int, float | None]:
    """Return how many replicas are wanted now, and since when fewer would be enough.

    More are wanted at once, fewer when that has held for ``HOLD_S``.

    >>> plan = ServicePlan(least=1, most=3, per_replica=4)
    >>> scaled(plan, 9, 0.0, 1, None), scaled(plan, 1, 10.0, 3, None)
    ((3, None), (3, 10.0))
    >>> scaled(plan, 1, 69.0, 3, 10.0), scaled(plan, 1, 70.0, 3, 10.0)
    ((3, 10.0), (1, None))
    """
    want, most = needed(plan, in_flight), min(wanted, plan.most)
    if want >= most:
        return want, None
    if enough_since is None:
        return most, now
    return (want, None) if now - enough_since >= HOLD_S else (most, enough_since)
