"""Parsing of typed values of a swept parameter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract.sweeps import ListedValues, SweptValues, ValueRange
from benchpool_scheduler.contract.swept_values import parse, shown
from benchpool_scheduler.errors import InvalidInput

numbers = st.floats(1e-9, 1e9).map(lambda number: float(f"{number:g}"))


@st.composite
def ranges(draw: st.DrawFn) -> ValueRange:
    low, high = sorted(draw(st.lists(numbers, min_size=2, max_size=2, unique=True)))
    points = draw(st.none() | st.integers(2, 1000))
    return ValueRange(low, high, log=draw(st.booleans()), points=points)


words = st.from_regex(r"[a-z_][a-z_/-]{0,20}", fullmatch=True).filter(lambda word: word[0] != "x")
lists = st.lists(
    st.booleans() | st.integers(-(10**9), 10**9) | numbers | words, min_size=1, max_size=9
).map(ListedValues)


@given(ranges() | lists)
def test_displayed_value_parses_to_same_value(values: SweptValues) -> None:
    assert shown(parse(shown(values), "lr")) == shown(values)
    if isinstance(values, ListedValues):
        assert parse(shown(values), "lr") == values


@pytest.mark.parametrize(
    ("typed", "refusal"),
    [
        ("", "No values are given for 'lr'. Accepted forms: 1, 2, 4 ·"),
        (" , ", "No values are given"),
        ("log:0:1", "begins at 0. On a log scale it must begin above 0"),
        ("3e-3 … 3e-5 log", "goes from 0.003 to 3e-05. The first must be smaller"),
        ("lin:1:1", "The first must be smaller"),
        ("9..1", "goes from 9 to 1. The first must be smaller"),
        ("0..1000", "'lr' has 1001 values; the limit is 1000"),
        ("lgo:1e-4:1e-1", "'lgo:1e-4:1e-1' is not a range for 'lr'. Accepted forms: 1, 2, 4 ·"),
        ("log:1e-4:1e-1:1", "'lr' has 1 points. From 2 to 1000"),
        ("int:0.5:3", "needs whole numbers, not 0.5 and 3"),
    ],
)
def test_invalid_value_is_rejected_with_name_and_reason(typed: str, refusal: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(typed, "lr")
    assert refusal in refused.value.message
    assert refused.value.field == "lr"


def test_quoted_word_stays_string() -> None:
    assert parse("'1', 1, 1.0, true", "x") == ListedValues(["1", 1, 1.0, True])
    assert parse("'a:1:2', b", "x") == ListedValues(["a:1:2", "b"])
