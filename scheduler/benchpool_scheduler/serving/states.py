"""Life cycle of a service and of its replicas, as literal tables.

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
    """Desired mode of a service."""

    AWAKE = "awake"
    """It has replicas."""
    ASLEEP = "asleep"
    """It has no replicas; the next request wakes it."""
    STOPPED = "stopped"
    """It has no replicas; only an authorized user can wake it, requests do not."""


class ServiceSign(StrEnum):
    """Event that may change the mode of a service."""

    REQUEST = "request"
    """A request reached its address."""
    IDLE = "idle"
    """No request came for its idle time."""
    SLEEP = "sleep"
    """An authorized user put it to sleep."""
    WAKE = "wake"
    """An authorized user woke it."""
    STOP = "stop"
    """An authorized user stopped it."""


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
"""Transitions of the mode; other events change nothing."""


def mode_after(mode: ServiceMode, sign: ServiceSign) -> ServiceMode:
    """Return the desired mode of a service after an event."""
    return MODES[mode].get(sign, mode)


class ReplicaPhase(StrEnum):
    """Phase of a replica."""

    WAITING = "waiting"
    """Its job waits in the queue, was preempted, or is paused."""
    STARTING = "starting"
    """Its program runs but does not answer yet."""
    READY = "ready"
    """It answers, and gets requests."""
    LEAVING = "leaving"
    """It gets no new requests, and is stopped when it has answered its open ones."""
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
"""Phases by the state of the job, for a replica that neither answers nor leaves."""


def phase_of(state: State, *, answers: bool, leaves: bool) -> ReplicaPhase:
    """Return the phase of a replica.

    Args:
        state: State of its job. ``answers``: whether its last readiness check succeeded.
        leaves: Whether it is leaving.

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
