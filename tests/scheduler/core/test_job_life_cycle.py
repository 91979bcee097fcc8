"""The life cycle of a job: properties of its tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract import State
from benchpool_scheduler.core.lifecycle import machine, states
from benchpool_scheduler.core.lifecycle.states import EVENTS, HOLDS_GPUS, Intent, JobState, Outcome

events = st.sampled_from([event() for event in EVENTS])


def test_states_match_wire_names() -> None:
    assert [state.value for state in JobState] == [state.value for state in State]


@given(st.sampled_from(JobState), events)
def test_event_outside_table_raises_and_changes_nothing(
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
def test_terminal_state_is_final(state: JobState, event: states.Event) -> None:
    assert not machine.can(state, type(event))


def test_every_state_and_event_is_reachable() -> None:
    reached = {JobState.QUEUED}
    while True:
        more = {after for state in reached for after in states.TRANSITIONS[state].values()}
        if more <= reached:
            break
        reached |= more
    assert reached == set(JobState)
    assert {event for steps in states.TRANSITIONS.values() for event in steps} == set(EVENTS)


@given(st.lists(events, max_size=40), st.sampled_from(Outcome))
def test_job_holding_gpus_can_end_with_any_intent(
    history: list[states.Event], outcome: Outcome
) -> None:
    state, intent = JobState.QUEUED, None
    for event in history:
        try:
            after = machine.apply(state, event)
        except machine.IllegalTransition:
            continue
        if isinstance(event, states.GaveWay | states.Parked | states.Cancelled | states.Failed):
            continue  # ends are drawn from the intent below
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
def test_end_of_pausing_job_follows_intent_unless_finished(
    intent: Intent, outcome: Outcome, after: JobState
) -> None:
    assert machine.apply(JobState.PAUSING, machine.all_gone(intent, outcome)) is after


@pytest.mark.parametrize("state", [JobState.STARTING, JobState.RUNNING])
def test_lost_node_requeues_job(state: JobState) -> None:
    assert machine.apply(state, machine.all_gone(None, Outcome.LOST)) is JobState.QUEUED


def test_cancel_overrides_pause_and_pause_overrides_preempt() -> None:
    assert machine.intend(Intent.PREEMPT, states.PauseAsked()) is Intent.PAUSE
    assert machine.intend(Intent.PAUSE, states.CancelAsked()) is Intent.CANCEL
    assert machine.intend(Intent.CANCEL, states.PauseAsked()) is Intent.CANCEL
    assert machine.intend(Intent.PAUSE, states.PreemptAsked()) is Intent.PAUSE


def test_resume_during_pause_requeues_job() -> None:
    state = machine.apply(JobState.PAUSING, states.ResumeAsked())
    intent = machine.intend(Intent.PAUSE, states.ResumeAsked())
    assert machine.apply(state, machine.all_gone(intent, Outcome.FAILED)) is JobState.QUEUED


def ends(state: JobState, intent: Intent | None) -> list[JobState]:
    """Return the final states of a job for each end of its workers, or the state itself."""
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
def test_stop_request_is_open_only_if_it_changes_end(
    state: JobState, intent: Intent | None
) -> None:
    for name, event in machine.REQUESTS.items():
        changes = False
        if machine.can(state, event):
            after, wished = machine.apply(state, event()), machine.intend(intent, event())
            changes = ends(state, intent) != ends(after, wished)
        assert (name in machine.open_requests(state, intent)) == changes
