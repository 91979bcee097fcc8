"""Options of a server, from form, query and REST API."""

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
def test_options_are_read_from_json_and_form(
    raw: dict[str, object], expected: ServerOptions
) -> None:
    assert parse(raw) == expected


@pytest.mark.parametrize("gpus", [-1, 1.5, True, "two", "1;2", [1, 2], 1025, "9" * 30, {"n": 1}])
def test_invalid_gpu_count_is_rejected_with_range(gpus: object) -> None:
    with pytest.raises(InvalidInput, match="whole number from 0 to 1024") as refused:
        parse({"gpus": gpus})
    assert refused.value.field == "gpus"


def test_unknown_option_is_rejected_with_suggestion() -> None:
    with pytest.raises(InvalidInput, match="did you mean gpus"):
        parse({"gpu": 1})


def test_foreign_form_fields_are_ignored() -> None:
    assert parse_form({"gpus": ["2"], "_xsrf": ["x"], "theme": ["dark"]}) == ServerOptions(2)


@given(st.dictionaries(st.sampled_from(["gpus", "gpu_models", "other"]), ANY_JSON))
def test_arbitrary_options_are_parsed_or_rejected(raw: dict[str, object]) -> None:
    try:
        options = parse(raw)
    except InvalidInput:
        return
    assert parse(options.as_user_options()) == options
