"""Condition of a service, in words.

The sentences are shown at its address, in lists of services, and on its page.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from benchpool_scheduler.contract.serving import ServiceState
from benchpool_scheduler.phrases import count
from benchpool_scheduler.serving import restarts
from benchpool_scheduler.serving.facts import ServiceStanding
from benchpool_scheduler.serving.states import ReplicaPhase, ServiceMode, ServiceSign


@dataclass(frozen=True, slots=True)
class ServiceCondition:
    """Condition of a service.

    Attributes:
        text: The condition and the next step, in sentences.
        failures: Replicas of this version that ended by themselves, in a row.
        retry_at: When another begins after those, epoch seconds; None for immediately.
    """

    state: ServiceState
    text: str
    failures: int = 0
    retry_at: float | None = None


class LeavingReason(StrEnum):
    """Why a replica ends, as its job reports it."""

    ASLEEP = "Its service sleeps: the next request wakes it."
    STOPPED = "Its service was stopped."
    OLDER = "A newer version of its service has taken over."
    FEWER = "Its service needs fewer replicas."
    REMOVED = "Its service was removed."


def why_leaving(mode: ServiceMode, version: int, newest: int) -> str:
    """Return why a replica leaves.

    >>> why_leaving(ServiceMode.AWAKE, 1, 2)
    'A newer version of its service has taken over.'
    """
    if mode is ServiceMode.ASLEEP:
        return LeavingReason.ASLEEP.value
    if mode is ServiceMode.STOPPED:
        return LeavingReason.STOPPED.value
    return (LeavingReason.OLDER if version < newest else LeavingReason.FEWER).value


def why_mode(sign: ServiceSign, by: str, why: str = "") -> str:
    """Return why a service is in the mode that an event caused.

    >>> why_mode(ServiceSign.STOP, "ada", "the node goes away"), why_mode(ServiceSign.IDLE, "")
    ('ada stopped it: the node goes away.', 'It received no request for its idle time.')
    """
    cause = {
        ServiceSign.REQUEST: "A request woke it",
        ServiceSign.IDLE: "It received no request for its idle time",
        ServiceSign.SLEEP: f"{by} put it to sleep",
        ServiceSign.WAKE: f"{by} woke it",
        ServiceSign.STOP: f"{by} stopped it",
    }[sign]
    text = f"{cause}: {why}" if why else cause
    return text if text.endswith((".", "!", "?")) else f"{text}."


def condition(
    standing: ServiceStanding,
    now: float,
    *,
    mode_reason: str,
    waits: str,
    failed: str,
    problem: str,
    unreached: str = "",
) -> ServiceCondition:
    """Return the condition of a service.

    Args:
        mode_reason: Why it is in its mode. ``waits``: why its first waiting replica waits.
        failed: How its newest failure ended. ``problem``: why a replica could not begin.
        unreached: Why the program may be unreachable; empty if nothing is known.
    """
    plan = standing.plan
    if standing.mode is ServiceMode.STOPPED:
        return ServiceCondition(
            ServiceState.STOPPED, f"Stopped: {mode_reason} No request wakes it."
        )
    if standing.mode is ServiceMode.ASLEEP:
        text = f"Asleep: {mode_reason} The next request wakes it."
        return ServiceCondition(ServiceState.ASLEEP, text)
    phases = Counter(it.phase for it in standing.replicas)
    ready = phases[ReplicaPhase.READY]
    sound = any(
        it.version == plan.version
        and it.ready_since is not None
        and now - it.ready_since >= restarts.SOUND_S
        for it in standing.replicas
    )
    failures = restarts.failures_in_a_row(standing.failures, plan.version, sound)
    retry = restarts.next_begin(standing.failures, plan.version, sound)
    retry_at = retry if retry > now else None
    trouble = _trouble(failures, retry_at, now, failed)
    if ready:
        text = _ready(standing, ready, waits)
        state = ServiceState.READY
    elif problem:
        return ServiceCondition(ServiceState.FAILED, problem, failures, retry_at)
    elif failures and retry_at is not None:
        return ServiceCondition(ServiceState.FAILED, trouble, failures, retry_at)
    elif phases[ReplicaPhase.STARTING]:
        text = f"Its program has started and does not answer yet. {unreached}".rstrip()
        state = ServiceState.STARTING
    elif phases[ReplicaPhase.WAITING] and waits:
        state, text = ServiceState.PAUSED, f"It waits for GPUs of the pool: {waits}"
    else:
        state, text = ServiceState.STARTING, "It is starting."
    return ServiceCondition(state, f"{text} {trouble}".rstrip(), failures, retry_at)


def _ready(standing: ServiceStanding, ready: int, waits: str) -> str:
    plan = standing.plan
    own = [it for it in standing.replicas if it.version == plan.version]
    new = sum(it.phase is ReplicaPhase.READY for it in own)
    text = f"{count(ready, 'replica')} {'answers' if ready == 1 else 'answer'}."
    if new < ready:
        text += f" Version {plan.version} takes over: {new} of {count(ready, 'replica')} so far."
    if any(it.phase is ReplicaPhase.WAITING for it in own) and waits:
        text += f" Another replica waits: {waits}"
        if new < ready and any(it.lacks_room for it in own):
            text += " There is no room for one more, so an older replica ends first."
    return text


def _trouble(failures: int, retry_at: float | None, now: float, failed: str) -> str:
    if not failures:
        return ""
    text = f"{count(failures, 'replica')} ended in a row. The last: {failed}"
    if retry_at is None:
        return text
    return f"{text} Another starts in {max(round(retry_at - now), 1)} s."
