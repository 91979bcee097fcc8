"""What a service does now: which replicas begin, leave and end, and whether it sleeps.

A replica that is to go leaves first: it gets no new requests, answers those it has, and is ended
then. A new version comes in one replica at a time: when that answers, one of the old leaves. Where
there is no room for one more, one of the old leaves first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchpool_scheduler.serving import restarts
from benchpool_scheduler.serving.facts import (
    ReplicaFacts,
    ServiceActs,
    ServicePlan,
    ServiceStanding,
    ServiceTraffic,
)
from benchpool_scheduler.serving.scaling import HOLD_S, scaled
from benchpool_scheduler.serving.states import (
    ReplicaPhase,
    ServiceMode,
    ServiceSign,
    mode_after,
)

SETTLE_S = 0.5
"""A replica leaves for at least so long: a request that was just handed to it is counted then."""
DRAIN_S = 60.0
"""A replica that still has requests so long after it was told to leave is ended all the same."""

LOOK_S = 1.0
"""One that has requests is looked at this often while it leaves."""

_GONE = (ReplicaPhase.LEAVING, ReplicaPhase.ENDED)


def decide(standing: ServiceStanding, traffic: ServiceTraffic, now: float) -> ServiceActs:
    """Return what is to be done with a service.

    Carried out, and with no news, the same question is answered with nothing to do.
    """
    plan = standing.plan
    live = [it for it in standing.replicas if it.phase not in _GONE]
    known = standing.wanted if standing.wanted is not None else max(len(live), 1)
    idle_at = _idle_at(standing, traffic, live)
    mode = standing.mode
    if idle_at is not None and now >= idle_at:
        mode = mode_after(mode, ServiceSign.IDLE)
    stop = tuple(it.job for it in standing.replicas if _is_done(it, now))
    if mode is not ServiceMode.AWAKE:
        leave = tuple(it.job for it in live)
        look = min(_leaving_times(standing.replicas, leave, now), default=None)
        return ServiceActs(mode, 0, None, 0, leave, stop, look)
    wanted, enough = scaled(
        plan, traffic.in_flight, now, known or 1, standing.enough_since if known else None
    )
    sound = any(_is_sound(it, plan, now) for it in live)
    begin_at = restarts.next_begin(standing.failures, plan.version, sound)
    failing = restarts.failures_in_a_row(standing.failures, plan.version, sound) > 0
    leave = tuple(_to_leave(standing, live, wanted, failing))
    staying = [it for it in live if it.job not in leave]
    lacking = _lacking(standing, staying, wanted, failing)
    times = [
        *_leaving_times(standing.replicas, leave, now),
        *([idle_at] if idle_at is not None else []),
        *([enough + HOLD_S] if enough is not None else []),
        *([begin_at] if lacking and begin_at > now else []),
    ]
    begin = lacking if begin_at <= now else 0
    return ServiceActs(mode, wanted, enough, begin, leave, stop, min(times, default=None))


def carried_out(standing: ServiceStanding, acts: ServiceActs, now: float) -> ServiceStanding:
    """Return a service as it is when these acts have begun, without the replicas that begin."""
    told = tuple(
        replace(it, phase=ReplicaPhase.LEAVING, leaving_since=now) if it.job in acts.leave else it
        for it in standing.replicas
    )
    since = standing.mode_since if acts.mode is standing.mode else now
    return replace(
        standing,
        mode=acts.mode,
        mode_since=since,
        replicas=told,
        wanted=acts.wanted,
        enough_since=acts.enough_since,
    )


def _idle_at(
    standing: ServiceStanding, traffic: ServiceTraffic, live: Sequence[ReplicaFacts]
) -> float | None:
    """Return when a service is to sleep if no request comes; None for not at all.

    One whose program is just starting does not: what has begun to load is let finish.
    """
    if standing.plan.least or standing.mode is not ServiceMode.AWAKE or traffic.in_flight:
        return None
    if any(it.phase is ReplicaPhase.STARTING for it in live):
        return None
    ready = [it.ready_since for it in live if it.ready_since is not None]
    asked = traffic.watched if traffic.last is None else traffic.last
    return max(asked, standing.mode_since, *ready) + standing.plan.idle_s


def _to_leave(
    standing: ServiceStanding, live: Sequence[ReplicaFacts], wanted: int, failing: bool
) -> Iterator[str]:
    plan = standing.plan
    own = _most_useful_first(it for it in live if it.version == plan.version)
    yield from (it.job for it in own[wanted:])
    own = own[:wanted]
    older = _most_useful_first(it for it in live if it.version != plan.version)
    # An older one that does not answer keeps nobody waiting.
    yield from (it.job for it in older if it.phase is not ReplicaPhase.READY)
    older = [it for it in older if it.phase is ReplicaPhase.READY]
    ready = sum(it.phase is ReplicaPhase.READY for it in own)
    kept = max(wanted - ready, 0)
    gives_way = plan.shares_port or (
        not failing
        and any(it.lacks_room for it in own)
        and not any(it.phase is ReplicaPhase.LEAVING for it in standing.replicas)
    )
    if gives_way:
        kept = min(kept, len(older) - 1)
    yield from (it.job for it in older[max(kept, 0) :])


def _lacking(
    standing: ServiceStanding, live: Sequence[ReplicaFacts], wanted: int, failing: bool
) -> int:
    """Return how many replicas of the newest version are to begin, as soon as they may."""
    plan = standing.plan
    own = [it for it in live if it.version == plan.version]
    lacking = max(wanted - len(own), 0)
    others = [it for it in standing.replicas if it.phase is not ReplicaPhase.ENDED]
    if plan.shares_port:
        return 0 if others else min(lacking, 1)
    one_by_one = failing or len(own) < len(live)
    if not one_by_one:
        return lacking
    coming = any(it.phase is not ReplicaPhase.READY for it in own)
    return 0 if coming else min(lacking, 1)


def _most_useful_first(some: Iterator[ReplicaFacts]) -> list[ReplicaFacts]:
    order = (ReplicaPhase.READY, ReplicaPhase.STARTING, ReplicaPhase.WAITING)
    return sorted(some, key=lambda it: (order.index(it.phase), -it.in_flight, it.job))


def _is_sound(replica: ReplicaFacts, plan: ServicePlan, now: float) -> bool:
    since = replica.ready_since
    return (
        replica.version == plan.version
        and since is not None
        and now - since >= restarts.SOUND_S
        and replica.phase is ReplicaPhase.READY
    )


def _is_done(replica: ReplicaFacts, now: float) -> bool:
    since = replica.leaving_since
    if replica.phase is not ReplicaPhase.LEAVING or since is None:
        return False
    return now - since >= (DRAIN_S if replica.in_flight else SETTLE_S)


def _leaving_times(
    replicas: Sequence[ReplicaFacts], told: Sequence[str], now: float
) -> Iterator[float]:
    """Yield when to look at those that leave, also at those that are ``told`` so now."""
    if told:
        yield now + SETTLE_S
    for it in replicas:
        if it.phase is ReplicaPhase.LEAVING and it.leaving_since is not None:
            at = it.leaving_since + (DRAIN_S if it.in_flight else SETTLE_S)
            at = min(at, now + LOOK_S)
            if at > now:
                yield at
