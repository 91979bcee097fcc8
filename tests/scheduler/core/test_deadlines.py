"""Verdicts on deadlines for every state of knowledge."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.contract.deadlines import DeadlineOutlook
from benchpool_scheduler.core.forecast.deadlines import (
    STATES,
    DeadlineState,
    Falls,
    LengthBasis,
    Phase,
    RunLength,
    RunStart,
    judge_ended,
    judge_open,
    length_of,
)
from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_support.examples import examples

HOUR = 3600.0
SOON = RunStart(0.0, HOUR)
NOW = RunStart(0.0, 0.0, waits=False)
LEARNED = RunLength(HOUR, 2 * HOUR, LengthBasis.LEARNED, 14)
LIMIT = RunLength(0.0, 2 * HOUR, LengthBasis.TIME_LIMIT)
PACE = RunLength(0.75 * HOUR, 1.25 * HOUR, LengthBasis.PACE)
NOTHING = RunLength()
NEVER = RunStart(None, None)

LITERAL = [
    # deadline, start, length: state, sentence
    (4, SOON, LEARNED, "will-be-met", "ends 1 h or more before its deadline: learned from 14 runs"),
    (2, SOON, LEARNED, "at-risk", "between 1 h before and 1 h after it, learned from 14 runs"),
    (0.5, SOON, LEARNED, "will-be-missed", "ends 30 min or more after its deadline"),
    (9, NEVER, LEARNED, "cannot-be-told", "the time of its start is not known"),
    (9, RunStart(None, None, waits=False), LEARNED, "cannot-be-told", "time of its resumption"),
    (0.5, NEVER, LEARNED, "will-be-missed", "ends 30 min or more after its deadline"),
    (4, SOON, NOTHING, "cannot-be-told", "its run time is not known"),
    (4, NEVER, NOTHING, "cannot-be-told", "its run time is not known"),
    (4, RunStart(5 * HOUR, None), NOTHING, "will-be-missed", "does not even start before"),
    (4, RunStart(5 * HOUR, None), LIMIT, "will-be-missed", "does not even start before"),
    (4, SOON, LIMIT, "will-be-met", "its time limit ends it by then at the latest"),
    (2, SOON, LIMIT, "cannot-be-told", "time limit would let it run until 1 h after it"),
    (2, NOW, PACE, "will-be-met", "ends 45 min or more before its deadline: at the pace"),
    (1, NOW, PACE, "at-risk", "between 15 min before and 15 min after it, at the pace"),
    (0.5, NOW, PACE, "will-be-missed", "at the pace of this attempt"),
    (-1, NOW, PACE, "missed", "did not end by its deadline"),
]


@pytest.mark.parametrize(("hours", "start", "length", "state", "sentence"), LITERAL)
def test_each_knowledge_state_has_deadline_state_and_sentence(
    hours: float, start: RunStart, length: RunLength, state: str, sentence: str
) -> None:
    found = judge_open(hours * HOUR, start, length, 0.0)
    assert found.state == state
    assert sentence in found.text


@pytest.mark.parametrize(
    ("ended", "well", "state"),
    [(1, True, "met"), (2, True, "met"), (3, True, "missed"), (1, False, "missed")],
)
def test_ended_job_met_or_missed_deadline(ended: float, well: bool, state: str) -> None:
    assert judge_ended(2 * HOUR, ended * HOUR, well=well).state == state


def test_table_covers_every_state_and_end() -> None:
    assert set(STATES.values()) == set(DeadlineState)
    assert list(map(str, DeadlineState)) == list(map(str, DeadlineOutlook))
    ends = product((Phase.DONE, Phase.GONE), (Falls.BEFORE, Falls.AFTER))
    assert set(STATES) == {*product([Phase.OPEN], Falls), *ends}


instants = st.floats(0, 1e6)


@st.composite
def known(draw: st.DrawFn) -> tuple[RunStart, RunLength]:
    first, more, least, longer = (draw(instants) for _ in range(4))
    length = RunLength(least, least + longer, LengthBasis.LEARNED, 9)
    return RunStart(first, first + more), length


@given(known(), instants, st.data())
@settings(max_examples=examples(300), deadline=None)
def test_verdict_never_contradicts_end_inside_range(
    what: tuple[RunStart, RunLength], deadline: float, data: st.DataObject
) -> None:
    start, length = what
    assert start.earliest_s is not None
    assert start.latest_s is not None
    assert length.most_s is not None
    begins = data.draw(st.floats(start.earliest_s, start.latest_s))
    end = begins + data.draw(st.floats(length.least_s, length.most_s))
    found = judge_open(deadline, start, length, 0.0)
    if found.state is DeadlineState.WILL_BE_MET:
        assert end <= deadline
    elif found.state is DeadlineState.WILL_BE_MISSED:
        assert end > deadline
    else:
        assert found.state is DeadlineState.AT_RISK


ORDER = (DeadlineState.WILL_BE_MISSED, DeadlineState.AT_RISK, DeadlineState.WILL_BE_MET)


@given(known(), instants, instants)
@settings(max_examples=examples(300), deadline=None)
def test_later_deadline_never_worsens_verdict(
    what: tuple[RunStart, RunLength], deadline: float, later: float
) -> None:
    found = [judge_open(at, *what, 0.0).state for at in (deadline, deadline + later)]
    assert ORDER.index(found[0]) <= ORDER.index(found[1])


def test_job_progress_precedes_history_and_time_limit() -> None:
    learned = Expectation(60.0, 90.0, 600.0, "pool", 5.0)
    by_pace = length_of(learned, 0.0, 900.0, 100.0)
    assert by_pace.basis is LengthBasis.PACE
    assert (by_pace.least_s, by_pace.most_s) == pytest.approx((90.0, 110.0))
    assert length_of(learned, 30.0, 900.0) == RunLength(30.0, 570.0, LengthBasis.LEARNED, 5)
    assert length_of(None, 30.0, 900.0) == RunLength(0.0, 900.0, LengthBasis.TIME_LIMIT)
