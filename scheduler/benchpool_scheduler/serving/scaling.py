"""Desired number of replicas of a service, by its requests in flight."""

from __future__ import annotations

from benchpool_scheduler.serving.facts import ServicePlan

HOLD_S = 60.0
"""Delay before the number of replicas is reduced, in seconds."""


def needed(plan: ServicePlan, in_flight: int) -> int:
    """Return the number of replicas for these requests in flight, within the limits; at least one.

    >>> plan = ServicePlan(least=0, most=3, per_replica=4)
    >>> [needed(plan, requests) for requests in (0, 4, 5, 8, 9, 100)]
    [1, 1, 2, 2, 3, 3]
    """
    asked = -(-in_flight // plan.per_replica)
    return min(max(asked, plan.least, 1), plan.most)


def scaled(
    plan: ServicePlan, in_flight: int, now: float, wanted: int, enough_since: float | None
) -> tuple[int, float | None]:
    """Return the desired number of replicas, and since when fewer would be enough.

    It rises immediately and falls after fewer have been enough for ``HOLD_S``.

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
