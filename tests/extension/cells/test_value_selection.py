"""Choice of the values to send: least total time, compared with every other choice."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool.cells.value_choice import SendingProblem, cheapest

CELLS = 6
NAMES = "abcde"


@st.composite
def problems(draw: st.DrawFn) -> SendingProblem:
    """Draw notebooks of a few cells whose names come from earlier cells."""
    needs = {}
    for cell in range(1, CELLS + 1):
        names = draw(st.sets(st.sampled_from(NAMES), max_size=3))
        above = st.frozensets(st.integers(0, cell - 1), min_size=1, max_size=2)
        needs[cell] = {name: draw(above) for name in sorted(names)}
    sendable = draw(st.sets(st.sampled_from(NAMES)))
    groups = {name: draw(st.sampled_from(("A", "B", "C"))) for name in sorted(sendable)}
    seconds = st.integers(0, 60).map(float)
    return SendingProblem(
        forced=frozenset({CELLS}) | draw(st.frozensets(st.integers(0, CELLS), max_size=1)),
        needs=needs,
        seconds={cell: draw(seconds) for cell in range(CELLS + 1)},
        groups=groups,
        send_s={group: draw(seconds) for group in sorted(set(groups.values()))},
    )


@given(problem=problems())
def test_chosen_values_take_least_total_time(problem: SendingProblem) -> None:
    found = cheapest(problem)
    groups = sorted(problem.send_s)
    every = [set(some) for size in range(len(groups) + 1) for some in combinations(groups, size)]
    least = min(problem.seconds_of(frozenset(some)) for some in every)
    assert problem.seconds_of(found) == pytest.approx(least)
    assert problem.running(found)[1] == found, "nothing is sent that no cell needs"


def test_sharing_values_are_sent_or_recomputed_together() -> None:
    problem = SendingProblem(
        forced=frozenset({3}),
        needs={3: {"frame": frozenset({1}), "view": frozenset({2})}, 2: {"frame": frozenset({1})}},
        seconds={1: 100.0, 2: 0.1, 3: 5.0},
        groups={"frame": "both", "view": "both"},
        send_s={"both": 4.0},
    )
    assert cheapest(problem) == {"both"}
    assert problem.running(frozenset({"both"}))[0] == {3}
    dear = SendingProblem(
        problem.forced, problem.needs, problem.seconds, problem.groups, {"both": 101.0}
    )
    assert cheapest(dear) == frozenset()
