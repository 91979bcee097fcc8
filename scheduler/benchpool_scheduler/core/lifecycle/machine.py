"""State machine of a job: applies events by the tables of ``states``.

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

REQUESTS: Mapping[str, type[Event]] = MappingProxyType(
    {"pause": PauseAsked, "resume": ResumeAsked, "cancel": CancelAsked}
)
"""User requests for a job, by their API names."""


class IllegalTransition(Exception):
    """The event is not allowed in this state. Nothing has changed.

    Attributes:
        state: The unchanged state.
        event: The rejected event.
    """

    def __init__(self, state: JobState, event: Event) -> None:
        super().__init__(f"a {state} job cannot take {type(event).__name__}")
        self.state = state
        self.event = event


def apply(state: JobState, event: Event) -> JobState:
    """Return the state after the event.

    Raises:
        IllegalTransition: The table has no such transition.
    """
    try:
        return TRANSITIONS[state][type(event)]
    except KeyError:
        raise IllegalTransition(state, event) from None


def can(state: JobState, event: type[Event]) -> bool:
    """Return whether the event is allowed now, for buttons and refusals.

    >>> can(JobState.PAUSED, ResumeAsked), can(JobState.RUNNING, ResumeAsked)
    (True, False)
    """
    return event in TRANSITIONS[state]


def open_requests(state: JobState, intent: Intent | None) -> frozenset[str]:
    """Return the requests that would change something about a job now, for buttons and menus.

    >>> sorted(open_requests(JobState.RUNNING, None)), sorted(open_requests(JobState.PAUSED, None))
    (['cancel', 'pause'], ['cancel', 'resume'])
    >>> sorted(open_requests(JobState.PAUSING, Intent.PAUSE))
    ['cancel', 'resume']
    >>> open_requests(JobState.RUNNING, Intent.CANCEL)
    frozenset()
    """
    return frozenset(
        name
        for name, event in REQUESTS.items()
        if can(state, event)
        and (state not in HOLDS_GPUS or INTENTS[event].get(intent, intent) is not intent)
    )


def intend(intent: Intent | None, event: Event) -> Intent | None:
    """Return the intent after the event.

    Events other than requests leave it unchanged. A job without workers has no intent: drop it when
    the state leaves ``states.HOLDS_GPUS``.
    """
    return INTENTS.get(type(event), {}).get(intent, intent)


def all_gone(intent: Intent | None, outcome: Outcome) -> Event:
    """Return the event for the end of the last worker.

    >>> all_gone(Intent.PREEMPT, Outcome.FAILED)
    GaveWay()
    >>> all_gone(Intent.PAUSE, Outcome.OK)
    Succeeded()
    """
    return ENDS[intent][outcome]()


def outcome_of(workers: Iterable[Outcome]) -> Outcome:
    """Return the outcome of a gang. A loss outweighs a failure, and a failure outweighs success.

    >>> outcome_of([Outcome.OK, Outcome.FAILED, Outcome.LOST])
    <Outcome.LOST: 'lost'>
    """
    present = set(workers)
    if Outcome.LOST in present:
        return Outcome.LOST
    return Outcome.FAILED if Outcome.FAILED in present else Outcome.OK


def is_over(state: JobState) -> bool:
    """Return whether the state is final."""
    return state in TERMINAL
