"""One curve over pauses: rolled-back points appear once; a long curve keeps its extremes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.curves.figures import best, last
from benchpool_scheduler.curves.points import MOST, Line, Point, Reported, extended, thinned
from benchpool_scheduler.curves.series import MOST_NAMES, MetricReport, as_reports, remade, taken

VALUES = st.none() | st.floats(-1e6, 1e6)
STEPS = st.integers(0, 10**6)
REPORTS = st.lists(st.builds(Reported, VALUES, st.floats(0, 1e9), STEPS | st.none()), max_size=60)
STORIES = st.lists(st.tuples(st.integers(1, 4), REPORTS), max_size=6)
LONG = st.lists(st.tuples(STEPS, VALUES), min_size=5, max_size=400, unique_by=lambda it: it[0])


def line_of(story: Sequence[tuple[int, list[Reported]]], most: int = MOST) -> Line:
    line: Line = ()
    for attempt, reports in story:
        line = extended(line, attempt, reports, most)
    return line


def drawn(line: Line) -> list[tuple[int, int, float | None]]:
    return [(it.attempt, it.step, it.value) for it in line]


@given(STORIES)
def test_steps_rise_and_attempts_never_fall(story: list[tuple[int, list[Reported]]]) -> None:
    line = line_of(story)
    assert [it.step for it in line] == sorted({it.step for it in line})
    assert [it.attempt for it in line] == sorted(it.attempt for it in line)


@given(STORIES)
def test_repeated_report_changes_nothing(
    story: list[tuple[int, list[Reported]]],
) -> None:
    """A restarted service reads a worker's reports from the start."""
    rising = [
        (attempt, [Reported(it.value, float(number), it.step) for number, it in enumerate(reports)])
        for attempt, reports in story[:1]
    ]
    line = line_of(rising)
    assert line_of([*rising, *rising]) == line


def test_resumed_attempt_replaces_points_from_its_first_step() -> None:
    first = [Reported(float(9 - step), float(step), step) for step in range(8)]
    second = [Reported(5.5, 20.0, 4), Reported(4.5, 21.0, 5)]
    line = line_of([(1, first), (2, second)])
    assert [it.step for it in line] == [0, 1, 2, 3, 4, 5]
    assert [it.attempt for it in line] == [1, 1, 1, 1, 2, 2]
    late = extended(line, 1, [Reported(0.0, 30.0, 7)])
    assert late == line, "what the first attempt tells late is rolled back already"


def test_stepless_values_continue_after_pause() -> None:
    bare = [Reported(1.0, 1.0), Reported(2.0, 2.0)]
    line = line_of([(1, bare), (2, [Reported(3.0, 9.0)])])
    assert drawn(line) == [(1, 0, 1.0), (1, 1, 2.0), (2, 2, 3.0)]
    assert line_of([(1, bare), (1, bare)]) == line_of([(1, bare)])


@given(LONG, st.integers(5, 60))
def test_thinned_curve_keeps_first_last_min_and_max(
    values: list[tuple[int, float | None]], most: int
) -> None:
    line = tuple(Point(1, step, value, 0.0) for step, value in sorted(values))
    kept = thinned(line, most)
    assert len(kept) <= most
    assert set(kept) <= set(line)
    assert list(kept) == sorted(kept, key=lambda it: it.step)
    assert (kept[0], kept[-1]) == (line[0], line[-1])
    assert last(kept) == last(line) or last(line) not in kept
    for goal in ("min", "max"):
        one, other = best(kept, goal), best(line, goal)
        assert (one and one.value) == (other and other.value)
    assert thinned(kept, most) == kept


@given(st.integers(MOST, 4 * MOST))
def test_long_run_is_thinned_evenly_within_limit(count: int) -> None:
    line = extended((), 1, [Reported(float(-(it % 97)), float(it), it) for it in range(count)])
    assert len(line) <= MOST
    gaps = [after.step - before.step for before, after in pairwise(line)]
    assert max(gaps) <= 2 * count / (len(line) / 4), "no stretch is much emptier than the others"
    assert (line[0].step, line[-1].step) == (0, count - 1)


def test_non_finite_loss_is_detected() -> None:
    reports = [
        Reported(None if it >= 1500 else 1.0 / (it + 1), float(it), it) for it in range(3000)
    ]
    line = extended((), 1, reports)
    gone = next(it for it in line if it.value is None)
    assert abs(gone.step - 1500) <= 8
    known = last(line)
    assert known is not None
    assert 1490 <= known.step < 1500


def test_metric_names_per_job_are_limited() -> None:
    values = tuple((f"layer{number}", Reported(1.0, 1.0, 1)) for number in range(MOST_NAMES + 5))
    lines, new = taken({}, MetricReport(1, values))
    assert len(lines) == len(new.values) == MOST_NAMES


@given(STORIES)
def test_stored_points_rebuild_same_curves(story: list[tuple[int, list[Reported]]]) -> None:
    lines = remade(
        MetricReport(attempt, tuple(("loss", it) for it in reports)) for attempt, reports in story
    )
    assert {name: set(line) for name, line in remade(as_reports(lines)).items()} == {
        name: set(line) for name, line in lines.items() if line
    }
