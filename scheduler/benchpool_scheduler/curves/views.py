"""Lines in the form that API clients see. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from benchpool_scheduler.contract.job_metrics import Curve, JobMetrics, MetricPoint, MetricsQuery
from benchpool_scheduler.curves.figures import best, goal_of, last
from benchpool_scheduler.curves.points import Line, Point, thinned
from benchpool_scheduler.curves.series import Lines


def answer(job: str, name: str, lines: Lines, query: MetricsQuery) -> JobMetrics:
    """Return the curves of a job that a query selects."""
    chosen = {it: line for it, line in lines.items() if query.name in (None, it) and line}
    begin = min((point.at for line in chosen.values() for point in line), default=None)
    return JobMetrics(
        job,
        name,
        None if begin is None else datetime.fromtimestamp(begin, UTC),
        [_curve(it, line, begin or 0.0, query.points) for it, line in chosen.items()],
    )


def _curve(name: str, whole: Line, begin: float, most: int) -> Curve:
    line = thinned(whole, most)
    return Curve(
        name,
        steps=[it.step for it in line],
        values=[it.value for it in line],
        after_s=[round(it.at - begin, 3) for it in line],
        attempts=[it.attempt for it in line],
        last=_shown(last(whole)),
        min=_shown(best(whole, "min")),
        max=_shown(best(whole, "max")),
        goal=goal_of(name),
    )


def _shown(point: Point | None) -> MetricPoint | None:
    if point is None or point.value is None:
        return None
    return MetricPoint(point.step, point.value)


SHOWN = 8
"""Maximum number of names whose newest values are shown in job lists and events."""


@dataclass(frozen=True, slots=True)
class NewestMetrics:
    """Newest values of a job's first names, and the time of its newest report in epoch seconds.

    Each report has another time, also if it changes no shown value.
    """

    values: dict[str, float]
    at: float


def newest(lines: Lines) -> dict[str, float]:
    """Return the newest values of the first names, for lists and events.

    >>> newest({"loss": (Point(1, 1, 0.5, 0.0),), "lr": (Point(1, 1, None, 0.0),)})
    {'loss': 0.5}
    """
    found = ((name, last(line)) for name, line in lines.items())
    known = [(name, it.value) for name, it in found if it is not None and it.value is not None]
    return dict(known[:SHOWN])


def points_of(curve: Curve) -> Iterable[tuple[int, int, float | None, float]]:
    """Yield attempt, step, value and seconds of each point of a curve."""
    return zip(curve.attempts, curve.steps, curve.values, curve.after_s, strict=True)
