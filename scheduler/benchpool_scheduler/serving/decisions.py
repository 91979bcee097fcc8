"""Next step of a service: the replicas that begin, leave and end, and whether the service sleeps.

A replica first leaves: it gets no new requests, answers its open ones, and is then ended. A new
version is rolled out one replica at a time: when the new replica answers, an old one leaves. If the
pool has no room for an additional replica, an old one leaves first.
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
"""Minimum time between leaving and end, so that a request just routed is counted, in seconds."""
DRAIN_S = 60.0
"""Timeout after which a leaving replica is ended despite open requests, in seconds."""

LOOK_S = 1.0
"""Poll interval for a leaving replica with open requests, in seconds."""

_GONE = (ReplicaPhase.LEAVING, ReplicaPhase.ENDED)


def decide(standing: ServiceStanding, traffic: ServiceTraffic, now: float) -> ServiceActs:
    """Return the next actions for a service.

    After they are carried out, the same call without news returns no further action.
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
    """Return the service after the start of these acts, without the new replicas."""
    replicas = tuple(
        replace(it, phase=ReplicaPhase.LEAVING, leaving_since=now) if it.job in acts.leave else it
        for it in standing.replicas
    )
    since = standing.mode_since if acts.mode is standing.mode else now
    return replace(
        standing,
        mode=acts.mode,
        mode_since=since,
        replicas=replicas,
        wanted=acts.wanted,
        enough_since=acts.enough_since,
    )


def _idle_at(
    standing: ServiceStanding, traffic: ServiceTraffic, live: Sequence[ReplicaFacts]
) -> float | None:
    """Return when a service goes to sleep if no request comes, or None if it does not.

    A service with a starting replica stays awake, so that the program can finish loading. A service
    whose clients wait keeps its place in the queue until a replica answers.
    """
    if standing.plan.least or standing.mode is not ServiceMode.AWAKE or traffic.in_flight:
        return None
    phases = {it.phase for it in live}
    if ReplicaPhase.STARTING in phases:
        return None
    asked = max(standing.mode_since, traffic.unserved or 0.0)
    clients_wait = traffic.last is None or traffic.last < asked
    if clients_wait and phases == {ReplicaPhase.WAITING}:
        return None
    ready = [it.ready_since for it in live if it.ready_since is not None]
    served = traffic.watched if traffic.last is None else traffic.last
    return max(served, asked, *ready) + standing.plan.idle_s


def _to_leave(
    standing: ServiceStanding, live: Sequence[ReplicaFacts], wanted: int, failing: bool
) -> Iterator[str]:
    plan = standing.plan
    own = _most_useful_first(it for it in live if it.version == plan.version)
    yield from (it.job for it in own[wanted:])
    own = own[:wanted]
    older = _most_useful_first(it for it in live if it.version != plan.version)
    # An older replica that does not answer serves no request.
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
    """Return the number of missing replicas of the newest version."""
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
    replicas: Sequence[ReplicaFacts], leaving: Sequence[str], now: float
) -> Iterator[float]:
    """Yield the next check times of leaving replicas; those in ``leaving`` begin to leave now."""
    if leaving:
        yield now + SETTLE_S
    for it in replicas:
        if it.phase is ReplicaPhase.LEAVING and it.leaving_since is not None:
            at = it.leaving_since + (DRAIN_S if it.in_flight else SETTLE_S)
            at = min(at, now + LOOK_S)
            if at > now:
                yield at
