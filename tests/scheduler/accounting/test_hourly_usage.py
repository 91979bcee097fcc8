"""Division of one history by the hour, and the last hour in cells."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.accounting.cells import cells
from benchpool_scheduler.accounting.classes import GpuUseKind
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval
from benchpool_scheduler.accounting.recorded import RecordedUse
from benchpool_support.gpu_histories import BEGIN, GpuHistory, Measured, histories

SUSAN = GpuHolder(GpuUseKind.TRAINING, "susan", "vision", "j", 1)
FREE = GpuHolder(GpuUseKind.FREE)
STEP_S = 600.0


def interval(begin: float, end: float, who: GpuHolder) -> GpuInterval:
    return GpuInterval("gpu", "node", "H200", begin, end, who)


def bucket(begin: float, covered_s: float, active_s: float, *, simulated: bool = False) -> Measured:
    return Measured("gpu", begin, STEP_S, covered_s, active_s, simulated=simulated)


@given(histories(), st.integers(1, 6))
def test_parts_of_range_add_up_to_whole(history: GpuHistory, parts: int) -> None:
    recorded = RecordedUse(
        BEGIN, history.end, history.occupancies, history.activity, history.losses
    )
    step_s = (history.end - BEGIN) / parts
    edges = [BEGIN + step_s * number for number in range(parts)] + [history.end]
    slices = [
        sum(sum(entry.seconds.values()) for entry in recorded.between(begin, end))
        for begin, end in itertools.pairwise(edges)
    ]
    assert slices == pytest.approx([history.gpus * step_s] * parts, abs=1e-3)
    whole = sum(sum(entry.seconds.values()) for entry in recorded.entries())
    assert sum(slices) == pytest.approx(whole, abs=1e-3)


def test_cell_belongs_to_longest_holder() -> None:
    history = [interval(0, 250, SUSAN), interval(250, 600, FREE), interval(600, 1200, SUSAN)]
    first, second = cells(history, (), (0.0, 600.0), STEP_S)["gpu"]
    assert (first.occupant, second.occupant) == (FREE, SUSAN)


def test_two_short_turns_of_one_holder_are_summed() -> None:
    history = [interval(0, 200, SUSAN), interval(200, 450, FREE), interval(450, 600, SUSAN)]
    (cell,) = cells(history, (), (0.0,), STEP_S)["gpu"]
    assert cell.occupant == SUSAN


def test_activity_excludes_unmeasured_gaps() -> None:
    measured = [bucket(0, 100, 50), bucket(0, 100, 100, simulated=True)]
    first, second = cells([interval(0, 1200, SUSAN)], measured, (0.0, 600.0), STEP_S)["gpu"]
    assert (first.activity, first.simulated) == (0.75, True)
    assert (second.activity, second.simulated) == (None, False)


def test_unrecorded_time_has_no_holder() -> None:
    first, second = cells([interval(0, 600, SUSAN)], (), (0.0, 600.0), STEP_S)["gpu"]
    assert first.occupant == SUSAN
    assert second.occupant is None
