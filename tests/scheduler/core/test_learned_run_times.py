"""Learned run times, for any history of jobs (R14, R22)."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.forecast import run_times
from benchpool_scheduler.core.forecast.run_times import ENOUGH, Expectation, RunTimes
from benchpool_scheduler.errors import InvalidInput
from benchpool_support.examples import examples

seconds = st.floats(0, 3e6)
ended = st.tuples(
    st.sampled_from(["susan", "joe"]),
    st.sampled_from(["vision", "speech"]),
    st.sampled_from(["train 1", "train 2", "eval"]),
    st.sampled_from([1, 2, 8]),
    seconds,
)
histories = st.lists(ended, max_size=300)


def learned(history: list[tuple[str, str, str, int, float]]) -> RunTimes:
    known = RunTimes()
    for example in history:
        known.learn(*example)
    return known


def ask(known: RunTimes, so_far: float = 0.0, limit: float | None = None) -> Expectation | None:
    return known.expect("susan", "vision", "train 3", 1, so_far, limit)


@given(histories, seconds)
def test_range_is_ordered_and_exceeds_time_already_run(
    history: list[tuple[str, str, str, int, float]], so_far: float
) -> None:
    found = ask(learned(history), so_far)
    if found is not None:
        assert so_far < found.low_s <= found.likely_s <= found.high_s


@given(histories, seconds)
def test_estimate_requires_enough_longer_examples(
    history: list[tuple[str, str, str, int, float]], so_far: float
) -> None:
    # Fewer examples than fill a histogram, so that none has lost weight.
    history = history[:100]
    longer = sum(ran_s > so_far * 1.1 + 1 for *_, ran_s in history)
    shorter = sum(ran_s < so_far / 1.1 - 1 for *_, ran_s in history)
    found = ask(learned(history), so_far)
    if longer >= ENOUGH:
        assert found is not None
    if len(history) - shorter < ENOUGH:
        assert found is None


@given(st.lists(seconds, min_size=8, max_size=100), seconds, seconds)
def test_longer_elapsed_time_raises_expected_total(
    history: list[float], one: float, other: float
) -> None:
    # One kind of job only, so that both answers use the same examples.
    known = learned([("susan", "vision", "train", 1, ran_s) for ran_s in history])
    sooner = known.expect("susan", "vision", "train", 1, min(one, other))
    later = known.expect("susan", "vision", "train", 1, max(one, other))
    if sooner is not None and later is not None:
        assert sooner.low_s <= later.low_s
        assert sooner.likely_s <= later.likely_s
        assert sooner.high_s <= later.high_s


@given(histories, st.floats(1, 1e5))
def test_time_limit_caps_every_bound(
    history: list[tuple[str, str, str, int, float]], limit: float
) -> None:
    known = learned(history)
    free, capped = ask(known), ask(known, limit=limit)
    assert (free is None) == (capped is None)
    if free is not None and capped is not None:
        assert capped.high_s == min(free.high_s, limit)
        assert capped.likely_s == min(free.likely_s, limit)


@given(histories, seconds)
def test_summary_through_json_answers_and_learns_alike(
    history: list[tuple[str, str, str, int, float]], so_far: float
) -> None:
    known = learned(history)
    again = RunTimes.of(json.loads(json.dumps(known.summary())))
    assert ask(again, so_far) == ask(known, so_far)
    known.learn("susan", "vision", "train 1", 1, 77.0)
    again.learn("susan", "vision", "train 1", 1, 77.0)
    assert json.dumps(again.summary()) == json.dumps(known.summary())


@settings(max_examples=examples(5))
@given(st.integers(0, 1000))
def test_memory_is_bounded(salt: int) -> None:
    known = RunTimes()
    for number in range(3 * max(run_times.MOST_KINDS)):
        owner = f"user{number % 2500}-{salt}"
        known.learn(owner, f"project{number % 1500}", f"name {chr(97 + number % 26)}", 1, number)
    sizes = [len(level) for level in known.summary()]
    assert all(size <= most for size, most in zip(sizes, run_times.MOST_KINDS, strict=True))
    assert sys.getsizeof(json.dumps(known.summary())) < 2_000_000


def test_most_specific_kind_with_enough_examples_answers() -> None:
    known = RunTimes()
    for _ in range(4):
        known.learn("joe", "speech", "sweep", 1, 10)
    assert_level(known, "pool", 10)
    for _ in range(4):
        known.learn("joe", "vision", "sweep", 1, 20)
    assert_level(known, "project", 20)
    for _ in range(4):
        known.learn("susan", "vision", "sweep", 1, 30)
    assert_level(known, "user-size", 30)
    for _ in range(4):
        known.learn("susan", "vision", "train 7", 8, 40)
    assert_level(known, "user-name", 40)
    for _ in range(4):
        known.learn("susan", "vision", "train 8", 1, 50)
    assert_level(known, "user-name-size", 50)


def assert_level(known: RunTimes, level: str, likely_s: float) -> None:
    found = known.expect("susan", "vision", "train 9", 1)
    assert found is not None
    assert (found.level, found.likely_s) == (level, likely_s)


def test_equal_run_times_are_predicted_to_the_second() -> None:
    known = learned([("susan", "vision", "train 1", 1, 611.0)] * 5)
    found = ask(known)
    assert found is not None
    assert (found.low_s, found.likely_s, found.high_s) == (611.0, 611.0, 611.0)


def test_recent_run_times_outweigh_old_run_times() -> None:
    known = learned([("susan", "vision", "train", 1, 100.0)] * 1000)
    for _ in range(300):
        known.learn("susan", "vision", "train", 1, 1000.0)
    found = ask(known)
    assert found is not None
    assert found.likely_s == 1000.0


def test_run_beyond_all_examples_has_no_known_end() -> None:
    known = learned([("susan", "vision", "train 1", 1, 100.0)] * 50)
    assert ask(known, 101) is None


@pytest.mark.parametrize("ran_s", [-1.0, float("nan"), float("inf")])
def test_invalid_run_time_is_rejected(ran_s: float) -> None:
    with pytest.raises(InvalidInput):
        RunTimes().learn("susan", "vision", "train", 1, ran_s)
