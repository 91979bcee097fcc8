"""Several jobs beside each other: in what they differ, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract import Curve, Job, JobMetrics, JobSubmission, MetricPoint
from benchpool_scheduler.curves.figures import Goal
from benchpool_scheduler.curves.parameters import NONE, parameters_of

MOST_RUNS = 20
"""Jobs that are compared at once."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A job with what it was sent with and what it reported."""

    job: Job
    parameters: Mapping[str, str]
    curves: Mapping[str, Curve]


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One parameter in which the runs differ; the values are in the order of the runs."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricCell:
    """What one run reached: null where it reported no number of that name.

    ``best`` is its least or greatest value by the goal. ``is_best``: no other run has a better one,
    and some run a worse one, or none.
    """

    last: MetricPoint | None
    best: MetricPoint | None
    is_best: bool = False


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One name in all runs; without a ``goal`` nothing is best."""

    name: str
    goal: Goal | None
    cells: tuple[MetricCell, ...]


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Runs in the order that was asked for; ``same`` is in how many parameters they agree."""

    jobs: tuple[Job, ...]
    parameters: tuple[ParameterRow, ...]
    same: int
    metrics: tuple[MetricRow, ...]

    @property
    def best(self) -> Mapping[str, int]:
        """The place of the best run by the name of each metric that has one."""
        found = {
            row.name: [place for place, cell in enumerate(row.cells) if cell.is_best]
            for row in self.metrics
        }
        return {name: places[0] for name, places in found.items() if places}


def run_of(job: Job, submission: JobSubmission, metrics: JobMetrics) -> ComparedRun:
    """Return a run as it is compared."""
    return ComparedRun(job, parameters_of(submission), {it.name: it for it in metrics.curves})


def compared(runs: Sequence[ComparedRun], goals: Mapping[str, Goal] | None = None) -> RunComparison:
    """Compare runs.

    Args:
        goals: What is better, by name of the metric; others are guessed by their names.
    """
    names = _in_order(run.parameters for run in runs)
    rows = [
        ParameterRow(name, tuple(run.parameters.get(name, NONE) for run in runs)) for name in names
    ]
    differing = tuple(row for row in rows if len(set(row.values)) > 1)
    metrics = (_metric(name, runs, goals or {}) for name in _in_order(run.curves for run in runs))
    return RunComparison(
        tuple(run.job for run in runs), differing, len(rows) - len(differing), tuple(metrics)
    )


def _in_order(maps: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for each in maps for name in each))


def _metric(name: str, runs: Sequence[ComparedRun], goals: Mapping[str, Goal]) -> MetricRow:
    curves = [run.curves.get(name) for run in runs]
    guessed = next((it.goal for it in curves if it is not None), None)
    goal = goals.get(name, guessed)
    reached = [_best(it, goal) for it in curves]
    values = [it.value for it in reached if it is not None]
    # Of runs that all reached the same none is the best.
    tells = len(runs) > 1 and (len(set(values)) > 1 or len(values) < len(runs))
    top = None if not values or not tells else min(values) if goal == "min" else max(values)
    return MetricRow(
        name,
        goal,
        tuple(
            MetricCell(
                None if curve is None else curve.last,
                best,
                best is not None and best.value == top,
            )
            for curve, best in zip(curves, reached, strict=True)
        ),
    )


def _best(curve: Curve | None, goal: Goal | None) -> MetricPoint | None:
    if curve is None or goal is None:
        return None
    return curve.min if goal == "min" else curve.max
