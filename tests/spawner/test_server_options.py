"""What a user may ask of a server, from form, address and REST API."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.errors import InvalidInput
from benchpool_spawner.options import ServerOptions, parse, parse_form

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, ServerOptions()),
        ({"gpus": 2}, ServerOptions(2)),
        ({"gpus": ["1"]}, ServerOptions(1)),
        ({"gpus": []}, ServerOptions(0)),
        ({"gpus": 1, "gpu_models": "A100"}, ServerOptions(1, ("A100",))),
        ({"gpus": 1, "gpu_models": ["A100", "A100", " V100 "]}, ServerOptions(1, ("A100", "V100"))),
        ({"gpus": 1, "gpu_models": [""], "profile": "1 GPU"}, ServerOptions(1)),
    ],
)
def test_options_are_read_from_json_and_from_a_form(
    raw: dict[str, object], expected: ServerOptions
) -> None:
    assert parse(raw) == expected


@pytest.mark.parametrize("gpus", [-1, 1.5, True, "two", "1;2", [1, 2], 1025, "9" * 30, {"n": 1}])
def test_a_wrong_number_of_gpus_is_refused_with_the_range(gpus: object) -> None:
    with pytest.raises(InvalidInput, match="whole number from 0 to 1024") as refused:
        parse({"gpus": gpus})
    assert refused.value.field == "gpus"


def test_an_option_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="did you mean gpus"):
        parse({"gpu": 1})


def test_fields_of_others_in_a_form_are_left_alone() -> None:
    assert parse_form({"gpus": ["2"], "_xsrf": ["x"], "theme": ["dark"]}) == ServerOptions(2)


@given(st.dictionaries(st.sampled_from(["gpus", "gpu_models", "other"]), ANY_JSON))
def test_whatever_a_client_sends_is_read_or_refused_in_words(raw: dict[str, object]) -> None:
    try:
        options = parse(raw)
    except InvalidInput:
        return
    assert parse(options.as_user_options()) == options
