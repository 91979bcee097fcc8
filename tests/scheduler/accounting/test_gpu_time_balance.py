"""Every GPU-second is counted in exactly one use class, for any history and any sum."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.accounting.classes import HELD, MEANINGS, TITLES
from benchpool_scheduler.accounting.division import divide
from benchpool_scheduler.accounting.totals import totals
from benchpool_scheduler.contract.use import UseBy, UseClass
from benchpool_support.examples import examples
from benchpool_support.gpu_histories import BEGIN, GpuHistory, histories, shares

ROUNDING_S = 1e-3


@settings(max_examples=examples(10_000))
@given(histories(), shares, shares)
def test_use_classes_add_up_to_gpu_time(history: GpuHistory, one: float, other: float) -> None:
    begin, end = sorted(BEGIN + part * (history.end - BEGIN) for part in (one, other))
    entries = divide(history.occupancies, history.activity, history.losses, begin, end)
    assert all(second >= 0 for entry in entries for second in entry.seconds.values())
    for entry in entries:
        cut = min(entry.occupancy.end, end) - max(entry.occupancy.begin, begin)
        assert sum(entry.seconds.values()) == pytest.approx(cut, abs=ROUNDING_S)
        assert entry.measured_s <= entry.measurable_s + ROUNDING_S
    for by in UseBy:
        found = totals(entries, by)
        gpu_s = sum(total.gpu_s for total in found.values())
        assert gpu_s == pytest.approx(history.gpus * (end - begin), abs=ROUNDING_S)


@settings(max_examples=examples(3000))
@given(histories(), st.lists(shares, min_size=1, max_size=3))
def test_adjacent_reports_add_up_to_whole_report(history: GpuHistory, cuts: list[float]) -> None:
    edges = [BEGIN, *sorted(BEGIN + cut * (history.end - BEGIN) for cut in cuts), history.end]
    facts = (history.occupancies, history.activity, history.losses)
    whole = totals(divide(*facts, BEGIN, history.end), UseBy.CLASS)[""]
    parts = [
        totals(divide(*facts, begin, end), UseBy.CLASS).get("")
        for begin, end in itertools.pairwise(edges)
    ]
    for one in UseClass:
        added = sum(part.seconds.get(one, 0.0) for part in parts if part)
        assert added == pytest.approx(whole.seconds.get(one, 0.0), abs=ROUNDING_S)


def test_use_class_has_title_and_meaning() -> None:
    assert TITLES.keys() == MEANINGS.keys() == set(UseClass)
    assert set(HELD) < set(UseClass)
