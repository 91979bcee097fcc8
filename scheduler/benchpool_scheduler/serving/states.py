"""The life of a service and of its replicas, as literal tables.

>>> mode_after(ServiceMode.ASLEEP, ServiceSign.REQUEST)
<ServiceMode.AWAKE: 'awake'>
>>> mode_after(ServiceMode.STOPPED, ServiceSign.REQUEST)
<ServiceMode.STOPPED: 'stopped'>
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from benchpool_scheduler.contract.jobs import State


class ServiceMode(StrEnum):
    """What a service wants to be."""

    AWAKE = "awake"
    """It has replicas."""
    ASLEEP = "asleep"
    """It has none; the next request wakes it."""
    STOPPED = "stopped"
    """It has none until somebody wakes it; requests do not."""


class ServiceSign(StrEnum):
    """What happens to a service."""

    REQUEST = "request"
    """Somebody opened its address."""
    IDLE = "idle"
    """Nobody has asked it anything for its idle time."""
    SLEEP = "sleep"
    """Somebody who may told it to sleep."""
    WAKE = "wake"
    """Somebody who may told it to wake."""
    STOP = "stop"
    """Somebody who may told it to answer nobody."""


MODES: Mapping[ServiceMode, Mapping[ServiceSign, ServiceMode]] = MappingProxyType(
    {
        ServiceMode.AWAKE: MappingProxyType(
            {
                ServiceSign.IDLE: ServiceMode.ASLEEP,
                ServiceSign.SLEEP: ServiceMode.ASLEEP,
                ServiceSign.STOP: ServiceMode.STOPPED,
            }
        ),
        ServiceMode.ASLEEP: MappingProxyType(
            {
                ServiceSign.REQUEST: ServiceMode.AWAKE,
                ServiceSign.WAKE: ServiceMode.AWAKE,
                ServiceSign.STOP: ServiceMode.STOPPED,
            }
        ),
        ServiceMode.STOPPED: MappingProxyType(
            {ServiceSign.WAKE: ServiceMode.AWAKE, ServiceSign.SLEEP: ServiceMode.ASLEEP}
        ),
    }
)
"""A sign that is not here changes nothing."""


def mode_after(mode: ServiceMode, sign: ServiceSign) -> ServiceMode:
    """Return what a service wants to be after a sign."""
    return MODES[mode].get(sign, mode)


class ReplicaPhase(StrEnum):
    """Where a replica is."""

    WAITING = "waiting"
    """Its job waits in the queue, was preempted, or is paused."""
    STARTING = "starting"
    """Its program runs, and does not answer yet."""
    READY = "ready"
    """It answers, and gets requests."""
    LEAVING = "leaving"
    """It gets no new requests, and is stopped when it has answered those it has."""
    ENDED = "ended"
    """Its job has ended."""


PHASES: Mapping[State, ReplicaPhase] = MappingProxyType(
    {
        State.QUEUED: ReplicaPhase.WAITING,
        State.STARTING: ReplicaPhase.STARTING,
        State.RUNNING: ReplicaPhase.STARTING,
        State.PAUSING: ReplicaPhase.WAITING,
        State.PAUSED: ReplicaPhase.WAITING,
        State.SUCCEEDED: ReplicaPhase.ENDED,
        State.FAILED: ReplicaPhase.ENDED,
        State.CANCELLED: ReplicaPhase.ENDED,
    }
)
"""By the state of its job, for one that does not answer and is not told to leave."""


def phase_of(state: State, *, answers: bool, leaves: bool) -> ReplicaPhase:
    """Return where a replica is.

    Args:
        state: Of its job. ``answers``: its readiness path did, when it was last asked.
        leaves: It was told to.

    >>> phase_of(State.RUNNING, answers=True, leaves=False)
    <ReplicaPhase.READY: 'ready'>
    >>> phase_of(State.PAUSING, answers=True, leaves=False)
    <ReplicaPhase.WAITING: 'waiting'>
    >>> phase_of(State.CANCELLED, answers=True, leaves=True)
    <ReplicaPhase.ENDED: 'ended'>
    """
    phase = PHASES[state]
    if phase is ReplicaPhase.ENDED:
        return phase
    if leaves:
        return ReplicaPhase.LEAVING
    return ReplicaPhase.READY if state is State.RUNNING and answers else phase
