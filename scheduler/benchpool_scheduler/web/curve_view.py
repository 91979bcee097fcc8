"""Charts of the curves of one or more jobs: lines, marks and words. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract import Curve
from benchpool_scheduler.curves.axes import ticks
from benchpool_scheduler.curves.views import points_of
from benchpool_scheduler.phrases import count
from benchpool_scheduler.phrases.sparks import metric

WIDTH, HEIGHT = 480.0, 180.0
LEFT, RIGHT, TOP, FOOT = 64.0, 10.0, 10.0, 24.0
STYLES = 6
"""Number of distinct styles of lines (colour and dashes); further lines repeat them."""
TABLE_ROWS = 20


@dataclass(frozen=True, slots=True)
class CurveLine:
    """One job's line: segments of points, single points, and positions of values that are no
    numbers.
    """

    label: str
    style: int
    stretches: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]
    broken: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CurveMark:
    """Line across the chart, with its label."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class CurveRow:
    """One point of the table."""

    label: str
    step: int
    value: str
    attempt: int


@dataclass(frozen=True, slots=True)
class CurvePicture:
    """Chart of one metric: ``words`` describe it, ``rows`` are some of its points."""

    name: str
    words: str
    lines: tuple[CurveLine, ...]
    levels: tuple[CurveMark, ...]
    pauses: tuple[CurveMark, ...]
    begin: str
    end: str
    rows: tuple[CurveRow, ...]


@dataclass(frozen=True, slots=True)
class LabelledCurves:
    """The curves of a job, with its label."""

    label: str
    curves: Sequence[Curve]


def pictures(jobs: Sequence[LabelledCurves]) -> tuple[CurvePicture, ...]:
    """Return a chart for each metric that the jobs have reported, in their order."""
    names = dict.fromkeys(curve.name for job in jobs for curve in job.curves)
    return tuple(_picture(name, jobs) for name in names)


def _picture(name: str, jobs: Sequence[LabelledCurves]) -> CurvePicture:
    shown = [
        (number, job.label, curve)
        for number, job in enumerate(jobs)
        for curve in job.curves
        if curve.name == name
    ]
    curves = [curve for _, _, curve in shown]
    scale = _Scale.of(curves)
    alone = len(jobs) == 1
    return CurvePicture(
        name,
        " ".join(_words(label if not alone else "", curve) for _, label, curve in shown),
        tuple(_line(scale, number, label, curve) for number, label, curve in shown),
        tuple(CurveMark(scale.y(at), metric(at)) for at in ticks(scale.low, scale.high)),
        tuple(mark for _, label, curve in shown for mark in _pauses(scale, curve, label, alone)),
        str(scale.first),
        str(scale.last),
        tuple(row for _, label, curve in shown for row in _rows(label, curve)),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Conversion of steps and values to the units of the chart."""

    first: int
    last: int
    low: float
    high: float

    @classmethod
    def of(cls, curves: Iterable[Curve]) -> _Scale:
        steps = [step for curve in curves for step in (curve.steps[0], curve.steps[-1])]
        values = [one.value for it in curves for one in (it.min, it.max) if one is not None]
        low, high = min(values, default=0.0), max(values, default=1.0)
        room = (high - low) * 0.05 or abs(low) * 0.05 or 1.0
        return cls(min(steps), max(steps), low - room, high + room)

    def x(self, step: int) -> float:
        part = (step - self.first) / ((self.last - self.first) or 1)
        return round(LEFT + part * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - FOOT - part * (HEIGHT - FOOT - TOP), 1)


def _line(scale: _Scale, number: int, label: str, curve: Curve) -> CurveLine:
    stretches: list[list[tuple[float, float]]] = [[]]
    broken: list[float] = []
    for step, value in zip(curve.steps, curve.values, strict=True):
        if value is None:
            broken.append(scale.x(step))
            stretches.append([])
        else:
            stretches[-1].append((scale.x(step), scale.y(value)))
    return CurveLine(
        label,
        number % STYLES,
        tuple(" ".join(f"{x},{y}" for x, y in it) for it in stretches if len(it) > 1),
        tuple(it[0] for it in stretches if len(it) == 1),
        tuple(broken),
    )


def _pauses(scale: _Scale, curve: Curve, label: str, alone: bool) -> Iterator[CurveMark]:
    before = curve.attempts[0]
    for step, attempt in zip(curve.steps, curve.attempts, strict=True):
        if attempt != before:
            whose = "" if alone else f"{label}: "
            yield CurveMark(scale.x(step), f"{whose}attempt {attempt} from step {step}")
        before = attempt


def _words(label: str, curve: Curve) -> str:
    """Return a description of a curve in a sentence."""
    whose = f"{label}: " if label else ""
    if curve.last is None or curve.min is None or curve.max is None:
        return f"{whose}no value of it is a number."
    last, least, most = (metric(it.value) for it in (curve.last, curve.min, curve.max))
    pauses = len(set(curve.attempts)) - 1
    ended = "" if curve.values[-1] is not None else " No number after that."
    paused = f", over {count(pauses, 'pause')}" if pauses else ""
    return (
        f"{whose}{last} at step {curve.last.step}{paused}; least {least} at step {curve.min.step}, "
        f"greatest {most} at step {curve.max.step}.{ended}"
    )


def _rows(label: str, curve: Curve) -> Iterator[CurveRow]:
    points = list(points_of(curve))
    every = max(1, -(-len(points) // TABLE_ROWS))
    for attempt, step, value, _ in [*points[:-1:every], points[-1]]:
        yield CurveRow(label, step, metric(value), attempt)
