"""Services in the words of their pages. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from benchpool_scheduler.contract.serving import PoolService, ServiceAccess, ServiceState
from benchpool_scheduler.phrases import ago, count, duration
from benchpool_scheduler.web.words import Moment, moment

ACTS: dict[ServiceState, tuple[str, ...]] = {
    ServiceState.READY: ("sleep", "restart", "stop"),
    ServiceState.STARTING: ("sleep", "restart", "stop"),
    ServiceState.PAUSED: ("sleep", "stop"),
    ServiceState.FAILED: ("restart", "stop"),
    ServiceState.ASLEEP: ("wake", "stop"),
    ServiceState.STOPPED: ("wake",),
}
"""Operations on a service that a page offers in each state; it can always be removed."""


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A service as its pages show it.

    Attributes:
        opens: Users who may open its address, besides its editors.
        replicas: Allowed numbers. ``rate``, ``times``: requests of the last minute.
        last: Time of the last request.
        acts: Available operations. ``events``: its events, each with its time.
    """

    service: PoolService
    opens: str
    replicas: str
    rate: str
    times: str
    last: str
    acts: tuple[str, ...]
    events: tuple[tuple[Moment, str], ...]


def view(one: PoolService, now: datetime) -> ServiceView:
    """Return a service as its pages show it."""
    times = one.times
    took = "–"
    if times.p50_ms is not None and times.p95_ms is not None:
        took = f"{times.p50_ms:.0f} / {times.p95_ms:.0f} ms"
    last = "none since the scheduler started"
    if times.last_request is not None:
        last = ago(max((now - times.last_request).total_seconds(), 0.0))
    return ServiceView(
        one,
        opens(one),
        replicas(one),
        f"{times.requests_per_s:.1f}",
        took,
        last,
        ACTS[one.state] if one.may_change else (),
        tuple((moment(it.at, now), it.text) for it in one.events),
    )


def opens(one: PoolService) -> str:
    """Return the users who may open a service, besides its editors."""
    match one.access:
        case ServiceAccess.OWNER:
            return "no other users"
        case ServiceAccess.PROJECT:
            return f"members of project {one.project}"
        case ServiceAccess.GROUP:
            return f"the Hub's group {one.group}" if one.group else "a group of the Hub"
        case ServiceAccess.EVERYONE:
            return "all logged-in users"


def replicas(one: PoolService) -> str:
    """Return the allowed numbers of replicas, and when it sleeps."""
    few, many = one.min_replicas, one.max_replicas
    number = count(few, "replica") if few == many else f"{few} to {count(many, 'replica')}"
    sleeps = f", asleep after {duration(one.idle_s)} without requests" if few == 0 else ""
    return f"{number} of {count(one.gpus, 'GPU')}{sleeps}"
