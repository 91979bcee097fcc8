"""The life of a job: what the tables promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract import State
from benchpool_scheduler.core.lifecycle import machine, states
from benchpool_scheduler.core.lifecycle.states import EVENTS, HOLDS_GPUS, Intent, JobState, Outcome

events = st.sampled_from([event() for event in EVENTS])


def test_the_states_are_the_words_of_the_wire() -> None:
    assert [state.value for state in JobState] == [state.value for state in State]


@given(st.sampled_from(JobState), events)
def test_an_event_outside_the_table_raises_and_changes_nothing(
    state: JobState, event: states.Event
) -> None:
    if machine.can(state, type(event)):
        assert machine.apply(state, event) in JobState
        return
    with pytest.raises(machine.IllegalTransition) as caught:
        machine.apply(state, event)
    assert caught.value.state is state
    assert type(event).__name__ in str(caught.value)
    assert state.value in str(caught.value)


@given(st.sampled_from(sorted(states.TERMINAL)), events)
def test_nothing_leaves_a_terminal_state(state: JobState, event: states.Event) -> None:
    assert not machine.can(state, type(event))


def test_every_state_is_reached_and_every_event_has_a_place() -> None:
    reached = {JobState.QUEUED}
    while True:
        more = {after for state in reached for after in states.TRANSITIONS[state].values()}
        if more <= reached:
            break
        reached |= more
    assert reached == set(JobState)
    assert {event for steps in states.TRANSITIONS.values() for event in steps} == set(EVENTS)


@given(st.lists(events, max_size=40), st.sampled_from(Outcome))
def test_a_job_that_holds_gpus_can_always_end_whatever_was_wished(
    history: list[states.Event], outcome: Outcome
) -> None:
    state, intent = JobState.QUEUED, None
    for event in history:
        try:
            after = machine.apply(state, event)
        except machine.IllegalTransition:
            continue
        if isinstance(event, states.GaveWay | states.Parked | states.Cancelled | states.Failed):
            continue  # ends are drawn from the intent, below
        state = after
        intent = machine.intend(intent, event) if state in HOLDS_GPUS else None
    if state in HOLDS_GPUS:
        assert machine.apply(state, machine.all_gone(intent, outcome)) not in HOLDS_GPUS


@pytest.mark.parametrize(
    ("intent", "outcome", "after"),
    [
        (Intent.PREEMPT, Outcome.FAILED, JobState.QUEUED),
        (Intent.PAUSE, Outcome.FAILED, JobState.PAUSED),
        (Intent.CANCEL, Outcome.FAILED, JobState.CANCELLED),
        (Intent.CANCEL, Outcome.OK, JobState.CANCELLED),
        (Intent.PREEMPT, Outcome.OK, JobState.SUCCEEDED),
        (Intent.PAUSE, Outcome.LOST, JobState.PAUSED),
    ],
)
def test_the_end_of_a_pausing_job_is_what_was_wished_unless_it_finished(
    intent: Intent, outcome: Outcome, after: JobState
) -> None:
    assert machine.apply(JobState.PAUSING, machine.all_gone(intent, outcome)) is after


@pytest.mark.parametrize("state", [JobState.STARTING, JobState.RUNNING])
def test_a_lost_machine_sends_the_job_back_to_the_queue(state: JobState) -> None:
    assert machine.apply(state, machine.all_gone(None, Outcome.LOST)) is JobState.QUEUED


def test_cancel_outdoes_pause_and_pause_outdoes_preempt() -> None:
    assert machine.intend(Intent.PREEMPT, states.PauseAsked()) is Intent.PAUSE
    assert machine.intend(Intent.PAUSE, states.CancelAsked()) is Intent.CANCEL
    assert machine.intend(Intent.CANCEL, states.PauseAsked()) is Intent.CANCEL
    assert machine.intend(Intent.PAUSE, states.PreemptAsked()) is Intent.PAUSE


def test_resume_during_a_pause_lets_the_job_queue_again_by_itself() -> None:
    state = machine.apply(JobState.PAUSING, states.ResumeAsked())
    intent = machine.intend(Intent.PAUSE, states.ResumeAsked())
    assert machine.apply(state, machine.all_gone(intent, Outcome.FAILED)) is JobState.QUEUED


def ends(state: JobState, intent: Intent | None) -> list[JobState]:
    """Return what a job comes to, by how its workers end; the state itself where it has none."""
    if state not in HOLDS_GPUS:
        return [state]
    return [machine.apply(state, machine.all_gone(intent, outcome)) for outcome in Outcome]


@pytest.mark.parametrize(
    ("state", "intent"),
    [
        *((state, None) for state in JobState if state is not JobState.PAUSING),
        *((state, Intent.CANCEL) for state in sorted(HOLDS_GPUS)),
        (JobState.PAUSING, Intent.PREEMPT),
        (JobState.PAUSING, Intent.PAUSE),
    ],
)
def test_a_wish_is_open_exactly_where_the_job_comes_to_something_else_by_it(
    state: JobState, intent: Intent | None
) -> None:
    for name, event in machine.WISHES.items():
        changes = False
        if machine.can(state, event):
            after, wished = machine.apply(state, event()), machine.intend(intent, event())
            changes = ends(state, intent) != ends(after, wished)
        assert (name in machine.open_wishes(state, intent)) == changes
