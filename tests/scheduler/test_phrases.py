"""Phrases on screens, checked with the examples that JupyterLab and the page scripts share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import EstimatedStart, GpuState, State, durations
from benchpool_scheduler.core.lifecycle.states import Intent, JobState
from benchpool_scheduler.runtime import EndedBy

EXAMPLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "phrases.json").read_text(encoding="utf-8")
)
PHRASES: dict[str, Callable[..., str | float | None]] = {
    "counts": phrases.count,
    "gpus": phrases.gpus_of_job,
    "durations": phrases.duration,
    "exact_times": phrases.exactly,
    "times_read": durations.seconds,
    "times_written": durations.written,
    "percents": phrases.percent,
    "dones": phrases.done,
    "pauses": phrases.pause_left,
    "log_ends": lambda attempt, newest, over, empty: phrases.log_end(
        attempt, newest, over=over, empty=empty
    ),
    "lefts": phrases.left,
    "ages": phrases.ago,
    "starts": phrases.start_in,
    "attempt_ends": phrases.attempt_end,
}
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("group", "arguments", "expected"),
    [(group, row[:-1], row[-1]) for group in PHRASES for row in EXAMPLES[group]],
)
def test_every_example_has_expected_phrase(
    group: str, arguments: list[Any], expected: str | float | None
) -> None:
    assert PHRASES[group](*arguments) == expected


def test_example_table_covers_every_word() -> None:
    words = {
        "states": phrases.STATES,
        "gpu_states": phrases.GPU_STATES,
        "ends": phrases.ENDS,
    }
    assert {group: EXAMPLES[group] for group in words} == {
        group: dict(table) for group, table in words.items()
    }
    assert set(EXAMPLES) == {"about", *PHRASES, *words}


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (phrases.STATES, State),
        (phrases.STATES, JobState),
        (phrases.GPU_STATES, GpuState),
        (phrases.ENDS, [*EndedBy, *Intent]),
    ],
)
def test_every_wire_value_has_own_phrase(
    table: Mapping[str, str], values: Iterable[StrEnum]
) -> None:
    assert set(table) == {str(value) for value in values}
    assert len(set(table.values())) == len(table)


def seconds_of(words: str) -> int:
    parts = words.split()
    return sum(
        int(number) * UNITS[unit] for number, unit in zip(parts[::2], parts[1::2], strict=True)
    )


@given(st.integers(min_value=0, max_value=10**8))
def test_duration_has_two_units_and_loses_at_most_smaller(seconds: int) -> None:
    words = phrases.duration(seconds)
    smallest = 1 if seconds < 60 else 60 if seconds < 86400 else 3600
    assert 0 <= seconds - seconds_of(words) < smallest
    assert len(words.split()) <= 4


@given(st.floats(min_value=0, max_value=1e8))
def test_upper_bound_phrase_is_never_below_value(seconds: float) -> None:
    assert seconds_of(phrases.at_most(seconds)) >= seconds


def test_start_range_is_relative_to_now() -> None:
    start = EstimatedStart(NOW + timedelta(minutes=5), None, NOW + timedelta(minutes=12))
    assert phrases.start_range(start, NOW) == "in 5–12 min"
    assert phrases.start_range(None, NOW) == phrases.NOT_KNOWN
    assert phrases.start_range(EstimatedStart(None, None, None), NOW) == phrases.NOT_KNOWN
