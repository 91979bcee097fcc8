"""The trials of a sweep as a parallel-coordinates chart, with an axis per parameter and metric.

Inselberg, *The plane with parallel coordinates* (1985). Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract.sweeps import (
    ListedValues,
    Scalar,
    Sweep,
    SweepPlan,
    SweptValues,
    TrialRow,
)

WIDTH, HEIGHT = 720, 260
TOP, FOOT, SIDE = 28, 30, 60
"""Margins for names (top), scale ends (bottom), and labels of the outer axes (sides)."""
MOST_LINES = 300
MOST_MARKS = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """A value at its position on an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class ParallelAxis:
    """An axis at ``x``."""

    name: str
    x: float
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class TrialLine:
    """A trial's line; ``place`` is 0 for the best, 1 for the better half, 2 for the rest."""

    number: int
    points: str
    place: int
    title: str


@dataclass(frozen=True, slots=True)
class ParallelPicture:
    """The chart. ``words`` describe it for readers who cannot see it."""

    axes: tuple[ParallelAxis, ...]
    lines: tuple[TrialLine, ...]
    words: str
    left_out: int


def picture(sweep: Sweep) -> ParallelPicture | None:
    """Return the chart of a sweep; None without a metric, or with fewer than two values."""
    measured = [row for row in sweep.trials if row.value is not None and math.isfinite(row.value)]
    if len(measured) < 2 or sweep.plan.metric is None:
        return None
    names = list(sweep.plan.parameters)
    gap = (WIDTH - 2 * SIDE) / len(names)
    values = [row.value for row in measured if row.value is not None]
    scales = [_scale(sweep.plan.parameters[name], measured, name) for name in names]
    scales.append(_NumberScale(min(values), max(values), log=False))
    titles = [*names, sweep.plan.metric]
    axes = tuple(
        ParallelAxis(title, SIDE + place * gap, scale.marks())
        for place, (title, scale) in enumerate(zip(titles, scales, strict=True))
    )
    shown = measured[:MOST_LINES]
    lines = tuple(
        TrialLine(
            row.number,
            _points(row, names, scales, axes),
            _place(rank, len(measured)),
            _title(row, sweep.plan),
        )
        for rank, row in enumerate(shown)
    )
    # The best is drawn last, on top.
    return ParallelPicture(
        axes, lines[::-1], _words(measured, sweep.plan), len(measured) - len(shown)
    )


def figure(value: float | None) -> str:
    """Return a metric's value as a table cell; a dash for none.

    >>> figure(0.123456), figure(None)
    ('0.1235', '–')
    """
    return "–" if value is None else f"{value:.4g}"


def parameter(value: Scalar | None) -> str:
    """Return a parameter's value as a table cell.

    >>> parameter(3e-05), parameter(True), parameter("adam")
    ('3e-05', 'true', 'adam')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class _NumberScale:
    low: float
    high: float
    log: bool

    def at(self, value: Scalar) -> float:
        number, low, high = float(value), self.low, self.high
        if self.log:
            number, low, high = math.log(number), math.log(low), math.log(high)
        share = 0.5 if high == low else (number - low) / (high - low)
        return round(HEIGHT - FOOT - share * (HEIGHT - FOOT - TOP), 1)

    def marks(self) -> tuple[Mark, ...]:
        ends = (self.low,) if self.low == self.high else (self.low, self.high)
        return tuple(Mark(self.at(one), figure(one)) for one in ends)


@dataclass(frozen=True, slots=True)
class _ListScale:
    values: tuple[Scalar, ...]

    def at(self, value: Scalar) -> float:
        place = next(
            (i for i, one in enumerate(self.values) if one == value and type(one) is type(value)), 0
        )
        share = 0.5 if len(self.values) == 1 else place / (len(self.values) - 1)
        return round(HEIGHT - FOOT - share * (HEIGHT - FOOT - TOP), 1)

    def marks(self) -> tuple[Mark, ...]:
        step = max(1, math.ceil(len(self.values) / MOST_MARKS))
        return tuple(Mark(self.at(one), parameter(one)) for one in self.values[::step])


_Scale = _NumberScale | _ListScale


def _scale(of: SweptValues, rows: Sequence[TrialRow], name: str) -> _Scale:
    if isinstance(of, ListedValues):
        return _ListScale(tuple(of.values))
    numbers = [float(row.parameters[name]) for row in rows]
    return _NumberScale(min(numbers), max(numbers), of.log)


def _points(
    row: TrialRow,
    names: Sequence[str],
    scales: Sequence[_Scale],
    axes: Sequence[ParallelAxis],
) -> str:
    values: list[Scalar] = [row.parameters[name] for name in names]
    values.append(0.0 if row.value is None else row.value)
    return " ".join(
        f"{axis.x:.1f},{scale.at(value)}"
        for axis, scale, value in zip(axes, scales, values, strict=True)
    )


def _place(rank: int, many: int) -> int:
    return 0 if rank == 0 else 1 if rank < many / 2 else 2


def _title(row: TrialRow, plan: SweepPlan) -> str:
    return f"Trial {row.number}: {_named(row.parameters)}; {plan.metric} {figure(row.value)}"


def _named(values: Mapping[str, Scalar]) -> str:
    return ", ".join(
        f"{name} {figure(value) if isinstance(value, float) else parameter(value)}"
        for name, value in values.items()
    )


def _words(measured: Sequence[TrialRow], plan: SweepPlan) -> str:
    best, worst = measured[0], measured[-1]
    return (
        f"The best, trial {best.number}, has {_named(best.parameters)} and {plan.metric} "
        f"{figure(best.value)}; the worst of {len(measured)}, trial {worst.number}, has "
        f"{_named(worst.parameters)} and {figure(worst.value)}."
    )
