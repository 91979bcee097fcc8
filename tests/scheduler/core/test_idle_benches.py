"""Detection of idle and due benches: 200 scripted days, the transition table, and random days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.core.benches.idle import (
    RESTING,
    TRANSITIONS,
    IdleLadder,
    IdleStep,
    IdleWatch,
    LookFound,
    Sighting,
    looked,
)
from benchpool_support.idle_cases import LOOK_S, cases, judged, sightings

LADDER = IdleLadder()
WORDS = ("gpu", "cpu", "shell", "cells", "rest", "blip", "gap", "mute", "dark", "kept", "asleep")
STORIES = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(1, 90)), min_size=1, max_size=9)


def test_idle_benches_are_never_released_wrongly_and_rarely_missed() -> None:
    verdicts = [judged(case) for case in cases()]
    assert len(verdicts) == len({one.case.name for one in verdicts}) == 200
    assert [one for one in verdicts if one.is_false] == []
    idle = [one for one in verdicts if one.case.due is not None]
    assert sum(one.is_missed for one in idle) <= 0.02 * len(idle)
    assert len(idle) >= 50
    assert min(Counter(one.case.kind for one in verdicts).values()) >= 3


@pytest.mark.parametrize(
    ("wrong", "at_least"),
    [
        (lambda seen: replace(seen, working=False), 40),  # kernels and terminals are ignored
        (lambda seen: replace(seen, executed=False), 10),  # short cells are ignored
        (lambda seen: replace(seen, measured_s=LOOK_S, activity=seen.activity or 0.0), 3),
        (lambda seen: replace(seen, spared=False), 6),
    ],
    ids=["kernels", "cells", "gaps", "exemptions"],
)
def test_cases_detect_faulty_observations(
    wrong: Callable[[Sighting], Sighting], at_least: int
) -> None:
    assert sum(judged(case, LADDER, wrong).is_false for case in cases()) >= at_least


def test_transition_table_covers_every_step_and_observation() -> None:
    assert set(TRANSITIONS) == set(IdleStep)
    for step, row in TRANSITIONS.items():
        assert set(row) == set(LookFound), step
        assert row[LookFound.SPARED] is row[LookFound.BUSY] is IdleStep.USED
        assert row[LookFound.WORKING] is IdleStep.CPU_PHASE
        assert row[LookFound.DOUBTFUL] is IdleStep.DOUBT
    due = {step for step, row in TRANSITIONS.items() if IdleStep.DUE in row.values()}
    assert due == {IdleStep.ASKED, IdleStep.DUE}
    asked = {step for step, row in TRANSITIONS.items() if IdleStep.ASKED in row.values()}
    assert asked == {IdleStep.TOLD, IdleStep.ASKED, IdleStep.DUE}


@given(STORIES)
def test_due_bench_was_idle_for_whole_time(
    story: list[tuple[str, int]],
) -> None:
    watch, seen_before = IdleWatch(), list[Sighting]()
    for _, seen in sightings(story):
        watch = looked(watch, seen, LADDER)
        seen_before.append(seen)
        if watch.step is IdleStep.DUE:
            last = [it for it in seen_before if it.at > seen.at - LADDER.act_s]
            assert not any(it.working or it.executed or it.spared for it in last)
            assert all((it.activity or 0.0) <= LADDER.busy_share for it in last)
            measured = [it for it in last if it.activity is not None and it.working is not None]
            assert len(measured) * LOOK_S >= LADDER.coverage * LADDER.act_s
            assert measured[-1] is seen


@given(STORIES)
def test_due_bench_was_warned_and_asked_before(story: list[tuple[str, int]]) -> None:
    watch, steps = IdleWatch(), [IdleStep.USED]
    for _, seen in sightings(story):
        watch = looked(watch, seen, LADDER)
        if watch.step is not steps[-1]:
            steps.append(watch.step)
        if watch.step is IdleStep.DUE:
            assert steps[-3:] == [IdleStep.TOLD, IdleStep.ASKED, IdleStep.DUE]
        assert (watch.idle_s > 0) <= (watch.step in RESTING)


def test_use_ends_idle_time_immediately() -> None:
    watch = IdleWatch()
    for _, seen in sightings([("rest", 70)]):
        watch = looked(watch, seen, LADDER)
    assert watch.step is IdleStep.DUE
    at = (watch.at or 0.0) + LOOK_S
    used = Sighting(at=at, measured_s=LOOK_S, activity=0.02, working=False)
    assert looked(watch, used, LADDER) == IdleWatch(IdleStep.USED, at=at, since=at)
    phase = Sighting(at=at, measured_s=LOOK_S, activity=0.0, working=True)
    assert looked(watch, phase, LADDER).step is IdleStep.CPU_PHASE
