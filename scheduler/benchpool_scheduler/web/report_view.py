"""A report as the page shows it: bars of classes with their shares, and rows in words.

A class has a colour, and a pattern where a similar colour is near it. The table below each chart
has the same figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler import phrases
from benchpool_scheduler.accounting.classes import HELD, TITLES
from benchpool_scheduler.contract.use import UseBy, UseClass, UseReport, UseRow

MOST_BARS = 12
"""Maximum number of rows with a bar; the table has all."""

SMALLEST = 0.0005
"""Smallest part of a bar that is drawn."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a bar, in percent of the chart's width."""

    style: str
    title: str
    x: str
    width: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of the chart."""

    name: str
    hours: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class ClassWords:
    """One class: style, title, hours, and share of all."""

    style: str
    title: str
    hours: str
    part: str


@dataclass(frozen=True, slots=True)
class RowWords:
    """One row of the table, in words."""

    rank: str
    name: str
    unnamed: bool
    held: str
    computing: str
    idle: str
    other: str
    unheld: str
    coverage: str
    efficiency: str
    energy: str
    cost: str
    waits: str
    gave: str
    took: str


def classes(row: UseRow) -> Sequence[ClassWords]:
    """Return the classes that have hours, in order; their shares add up."""
    found = {one: hours for one in UseClass if (hours := row.gpu_h.get(one, 0.0)) > 0}
    amounts = list(found.values())
    parts = zip(found, phrases.parts_of_gpu_hours(amounts), phrases.shares(amounts), strict=True)
    return [ClassWords(one.value, TITLES[one], hours, part) for one, hours, part in parts]


def whole(row: UseRow) -> Bar:
    """Return the bar of all classes together."""
    gpu_h = sum(row.gpu_h.values())
    return Bar("", phrases.gpu_hours(gpu_h), tuple(_segments(row.gpu_h, UseClass, gpu_h)))


def bars(report: UseReport) -> Sequence[Bar]:
    """Return the bars of the rows' held GPUs; the longest has the width of the chart."""
    rows = [row for row in report.rows if row.held_gpu_h > 0][:MOST_BARS]
    if report.by is UseBy.CLASS or not rows:
        return ()
    longest = max(row.held_gpu_h for row in rows)
    return [
        Bar(
            row.name or unnamed_label(report),
            phrases.gpu_hours(row.held_gpu_h),
            tuple(_segments(row.gpu_h, HELD, longest)),
        )
        for row in rows
    ]


def unnamed_label(report: UseReport) -> str:
    """Return the label of the row without a name; only administrators see unheld GPUs."""
    if report.by is not UseBy.PROJECT:
        return "nobody"
    return "no project: benches" + (", and GPUs without a holder" if report.sight == "pool" else "")


def _segments(
    gpu_h: Mapping[UseClass, float], of: Sequence[UseClass] | type[UseClass], width: float
) -> Iterator[Segment]:
    at = 0.0
    for one in of:
        part = gpu_h.get(one, 0.0) / width if width > 0 else 0.0
        if part >= SMALLEST:
            title = f"{TITLES[one]}: {phrases.gpu_hours(gpu_h[one])} GPU-hours"
            yield Segment(one.value, title, f"{at:.3%}", f"{part:.3%}")
        at += part


def rows(report: UseReport) -> Sequence[RowWords]:
    """Return the rows of the table."""
    return [_row(report, row) for row in report.rows]


def _row(report: UseReport, row: UseRow) -> RowWords:
    def hours(*of: UseClass) -> str:
        return phrases.gpu_hours(sum(row.gpu_h.get(one, 0.0) for one in of))

    waits = row.waits
    return RowWords(
        rank="–" if row.rank is None else str(row.rank),
        name=row.name or unnamed_label(report),
        unnamed=row.name is None,
        held=phrases.gpu_hours(row.held_gpu_h),
        computing=hours(UseClass.COMPUTING),
        idle=hours(UseClass.IDLE_BENCH, UseClass.IDLE_TRAINING),
        other=hours(UseClass.STARTING, UseClass.LOST, UseClass.NOT_MEASURED),
        unheld=hours(*(one for one in UseClass if one not in HELD)),
        coverage="–" if row.coverage is None else phrases.percent(row.coverage),
        efficiency="not measured" if row.efficiency is None else phrases.percent(row.efficiency),
        energy="–" if row.energy_kwh is None else f"{row.energy_kwh:,.1f} kWh",
        cost="–" if row.cost is None else f"{row.cost:,.2f} {report.currency}",
        waits=(
            "–"
            if waits is None
            else f"{phrases.duration(waits.p50_s)} / {phrases.duration(waits.p95_s)}"
        ),
        gave=str(row.preemptions_given),
        took=str(row.preemptions_taken),
    )
