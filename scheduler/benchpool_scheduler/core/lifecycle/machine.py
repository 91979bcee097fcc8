"""Applies events to the life of a job by the tables of ``states``.

>>> from benchpool_scheduler.core.lifecycle.states import JobState, PreemptAsked, StartChosen
>>> apply(JobState.QUEUED, StartChosen())
<JobState.STARTING: 'starting'>
>>> apply(JobState.PAUSED, PreemptAsked())
Traceback (most recent call last):
...
benchpool_scheduler.core.lifecycle.machine.IllegalTransition: a paused job cannot take PreemptAsked
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from benchpool_scheduler.core.lifecycle.states import (
    ENDS,
    HOLDS_GPUS,
    INTENTS,
    TERMINAL,
    TRANSITIONS,
    CancelAsked,
    Event,
    Intent,
    JobState,
    Outcome,
    PauseAsked,
    ResumeAsked,
)

WISHES: Mapping[str, type[Event]] = MappingProxyType(
    {"pause": PauseAsked, "resume": ResumeAsked, "cancel": CancelAsked}
)
"""What people may want of a job, by the name that the API gives it."""


class IllegalTransition(Exception):
    """The event has no meaning in this state; nothing has changed.

    Attributes:
        state: The state, which still holds.
        event: The event that was refused.
    """

    def __init__(self, state: JobState, event: Event) -> None:
        super().__init__(f"a {state} job cannot take {type(event).__name__}")
        self.state = state
        self.event = event


def apply(state: JobState, event: Event) -> JobState:
    """Return the state after the event.

    Raises:
        IllegalTransition: The table has no such step.
    """
    try:
        return TRANSITIONS[state][type(event)]
    except KeyError:
        raise IllegalTransition(state, event) from None


def can(state: JobState, event: type[Event]) -> bool:
    """Tell whether the event is legal now; for buttons and refusals.

    >>> can(JobState.PAUSED, ResumeAsked), can(JobState.RUNNING, ResumeAsked)
    (True, False)
    """
    return event in TRANSITIONS[state]


def open_wishes(state: JobState, intent: Intent | None) -> frozenset[str]:
    """Return the wishes that would change something about a job now; for buttons and menus.

    >>> sorted(open_wishes(JobState.RUNNING, None)), sorted(open_wishes(JobState.PAUSED, None))
    (['cancel', 'pause'], ['cancel', 'resume'])
    >>> sorted(open_wishes(JobState.PAUSING, Intent.PAUSE))
    ['cancel', 'resume']
    >>> open_wishes(JobState.RUNNING, Intent.CANCEL)
    frozenset()
    """
    return frozenset(
        name
        for name, event in WISHES.items()
        if can(state, event)
        and (state not in HOLDS_GPUS or INTENTS[event].get(intent, intent) is not intent)
    )


def intend(intent: Intent | None, event: Event) -> Intent | None:
    """Return what is wished of the workers after the event.

    Events that are no wish leave it as it is. A job that holds nothing has no intent: forget it
    when the state leaves ``states.HOLDS_GPUS``.
    """
    return INTENTS.get(type(event), {}).get(intent, intent)


def all_gone(intent: Intent | None, outcome: Outcome) -> Event:
    """Return the event that the end of the last worker is.

    >>> all_gone(Intent.PREEMPT, Outcome.FAILED)
    GaveWay()
    >>> all_gone(Intent.PAUSE, Outcome.OK)
    Succeeded()
    """
    return ENDS[intent][outcome]()


def outcome_of(workers: Iterable[Outcome]) -> Outcome:
    """Return the outcome of a gang: a loss goes before a failure, a failure before success.

    >>> outcome_of([Outcome.OK, Outcome.FAILED, Outcome.LOST])
    <Outcome.LOST: 'lost'>
    """
    present = set(workers)
    if Outcome.LOST in present:
        return Outcome.LOST
    return Outcome.FAILED if Outcome.FAILED in present else Outcome.OK


def is_over(state: JobState) -> bool:
    """Tell whether the job is in a state that nothing leaves."""
    return state in TERMINAL
