"""Comparison of several jobs: their differences and their results. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract import Curve, Job, JobMetrics, JobSubmission, MetricPoint
from benchpool_scheduler.curves.figures import Goal
from benchpool_scheduler.curves.parameters import NONE, parameters_of

MOST_RUNS = 20
"""Maximum number of jobs in one comparison."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A job with its submission and its reported metrics."""

    job: Job
    parameters: Mapping[str, str]
    curves: Mapping[str, Curve]


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """One parameter with different values; the values are in the order of the runs."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricCell:
    """Result of one run; null if it reported no number of that name.

    ``best`` is its least or greatest value by the goal. ``is_best``: no other run has a better
    value, and at least one has a worse value or none.
    """

    last: MetricPoint | None
    best: MetricPoint | None
    is_best: bool = False


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric in all runs; without a ``goal`` no run is best."""

    name: str
    goal: Goal | None
    cells: tuple[MetricCell, ...]


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Runs in the requested order; ``same`` is the number of parameters with equal values."""

    jobs: tuple[Job, ...]
    parameters: tuple[ParameterRow, ...]
    same: int
    metrics: tuple[MetricRow, ...]

    @property
    def best(self) -> Mapping[str, int]:
        """Index of the best run, by the name of each metric that has one."""
        found = {
            row.name: [place for place, cell in enumerate(row.cells) if cell.is_best]
            for row in self.metrics
        }
        return {name: places[0] for name, places in found.items() if places}


def run_of(job: Job, submission: JobSubmission, metrics: JobMetrics) -> ComparedRun:
    """Return the job as a run for comparison."""
    return ComparedRun(job, parameters_of(submission), {it.name: it for it in metrics.curves})


def compared(runs: Sequence[ComparedRun], goals: Mapping[str, Goal] | None = None) -> RunComparison:
    """Return the comparison of runs.

    Args:
        goals: Goals by metric name; missing goals are guessed from the names.
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
    # If all runs have the same result, none is the best.
    differ = len(runs) > 1 and (len(set(values)) > 1 or len(values) < len(runs))
    top = None if not values or not differ else min(values) if goal == "min" else max(values)
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
