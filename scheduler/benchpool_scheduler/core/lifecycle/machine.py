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

from collections.abc import Iterable

from benchpool_scheduler.core.lifecycle.states import (
    ENDS,
    INTENTS,
    TERMINAL,
    TRANSITIONS,
    Event,
    Intent,
    JobState,
    Outcome,
)


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

    >>> from benchpool_scheduler.core.lifecycle.states import ResumeAsked
    >>> can(JobState.PAUSED, ResumeAsked), can(JobState.RUNNING, ResumeAsked)
    (True, False)
    """
    return event in TRANSITIONS[state]


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
