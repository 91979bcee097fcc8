"""All lines of a job, by name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from benchpool_scheduler.curves.points import Line, Reported, extended
from benchpool_scheduler.phrases import visible

MOST_NAMES = 100
"""Maximum number of metric names kept per job; later ones are left out."""
NAME_LENGTH = 100

Lines = Mapping[str, Line]


class MetricReport(NamedTuple):
    """Values that one attempt reported together, by name, in their order."""

    attempt: int
    values: tuple[tuple[str, Reported], ...]


def taken(lines: Lines, report: MetricReport) -> tuple[Lines, MetricReport]:
    """Return the lines with a report added, and the new part of the report.

    >>> first = MetricReport(1, (("loss", Reported(3.0, 10.0, 1)), ("", Reported(1.0, 10.0, 1))))
    >>> lines, new = taken({}, first)
    >>> sorted(lines), len(new.values), len(taken(lines, first)[1].values)
    (['loss'], 1, 0)
    """
    by_name: dict[str, list[Reported]] = {}
    for name, value in report.values:
        by_name.setdefault(clean_name(name), []).append(value)
    known, new = dict(lines), []
    for name, values in by_name.items():
        if not name or (name not in known and len(known) >= MOST_NAMES):
            continue
        before = known.get(name, ())
        known[name] = extended(before, report.attempt, values)
        if known[name] != before:
            new += [(name, value) for value in values]
    return known, MetricReport(report.attempt, tuple(new))


def clean_name(name: str) -> str:
    """Return a metric name in the form that is stored and shown.

    >>> clean_name("  train/loss\\n")
    'train/loss'
    """
    return visible(" ".join(name.split()))[:NAME_LENGTH]


def remade(reports: Iterable[MetricReport]) -> Lines:
    """Return the lines that result from all reports, in their order."""
    lines: Lines = {}
    for one in reports:
        lines, _ = taken(lines, one)
    return lines


def as_reports(lines: Lines) -> list[MetricReport]:
    """Return the reports that rebuild exactly these lines.

    >>> lines, _ = taken({}, MetricReport(1, (("loss", Reported(3.0, 10.0, None)),)))
    >>> remade(as_reports(lines)) == lines
    True
    """
    by_attempt: dict[int, list[tuple[str, Reported]]] = {}
    for name, line in lines.items():
        for point in line:
            value = Reported(point.value, point.at, point.step)
            by_attempt.setdefault(point.attempt, []).append((name, value))
    return [MetricReport(attempt, tuple(values)) for attempt, values in sorted(by_attempt.items())]
