"""The page that compares jobs: their curves, differences and results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract import JobMetrics, MetricsQuery
from benchpool_scheduler.contract.sweeps import Sweep
from benchpool_scheduler.curves.comparison import (
    MOST_RUNS,
    ComparedRun,
    MetricCell,
    RunComparison,
    compared,
    run_of,
)
from benchpool_scheduler.curves.figures import Goal
from benchpool_scheduler.curves.trials import best_of, goals_of, label_of
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases.sparks import metric
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.curve_view import FOOT, HEIGHT, LEFT, WIDTH, LabelledCurves, pictures
from benchpool_scheduler.web.pages import PageHandler

POINTS = 300
SIZE = (WIDTH, HEIGHT, LEFT, FOOT)
GOALS: dict[str, Goal] = {"min": "min", "max": "max"}


@dataclass(frozen=True, slots=True)
class RunCell:
    """Result of one job in one metric, in words."""

    text: str
    is_best: bool


@dataclass(frozen=True, slots=True)
class RunRow:
    """One job of the comparison."""

    id: str
    label: str
    state: str
    tags: tuple[str, ...]
    note: str
    parameters: tuple[str, ...]
    metrics: tuple[RunCell, ...]


class RunsHandler(PageHandler):
    """``GET <prefix>compare?job=A&job=B…``, ``?tag=T`` or ``?sweep=S``.

    ``goal=loss:min`` defines which value is better; a sweep defines it for its objective.
    """

    async def get(self) -> None:
        """Show the page. Errors: NotFound for a job that the reader may not see, InvalidInput."""
        caller = await self.reader()
        tag = self.get_query_argument("tag", "").strip()
        sweep = await self._sweep(caller)
        ids = await self._ids(caller, tag, sweep)
        runs, answers = [], []
        for id_ in ids:
            run, answer = await self._run(caller, id_)
            runs.append(run)
            answers.append(answer)
        labels = [label_of(it.job) for it in runs]
        goals = {**(goals_of(sweep) if sweep else {}), **dict(self._goals())}
        found = compared(runs, goals)
        shown = [
            LabelledCurves(label, it.curves) for label, it in zip(labels, answers, strict=True)
        ]
        rows = rows_of(found, labels)
        await self.show(
            "runs.html",
            self.facts(),
            found=found,
            rows=rows,
            named=[it for it in rows if sweep is None or it.id not in best_of(sweep, MOST_RUNS)],
            labels=labels,
            goals=goals,
            tag=tag,
            sweep=sweep,
            most=MOST_RUNS,
            size=SIZE,
            pictures=await asyncio.to_thread(pictures, shown),
        )

    async def _sweep(self, caller: Caller) -> Sweep | None:
        named = self.get_query_argument("sweep", "").strip()
        return await self.site.pool.sweeps.show(caller, named) if named else None

    async def _ids(self, caller: Caller, tag: str, sweep: Sweep | None) -> list[str]:
        named = [it.strip() for it in self.get_query_arguments("job") if it.strip()]
        if sweep is not None:
            named = [*best_of(sweep, MOST_RUNS - len(named)), *named]
        if tag:
            tagged = self.site.pool.jobs.select(caller, all=True, tag=tag, limit=MOST_RUNS)
            named += [it.id for it in tagged]
        ids = [self.site.pool.jobs.detail(caller, it).job.id for it in named[: MOST_RUNS + 1]]
        ids = list(dict.fromkeys(ids))
        if len(ids) > MOST_RUNS:
            raise InvalidInput(
                f"At most {MOST_RUNS} jobs are compared at once. Leave some out.",
                field="job",
                numbers={"limit": MOST_RUNS},
            )
        return ids

    async def _run(self, caller: Caller, id_: str) -> tuple[ComparedRun, JobMetrics]:
        pool = self.site.pool
        answer = await pool.logs.metrics(caller, id_, MetricsQuery(points=POINTS))
        job = pool.jobs.detail(caller, id_).job
        return run_of(job, pool.jobs.submission(caller, id_), answer), answer

    def _goals(self) -> Iterator[tuple[str, Goal]]:
        for text in self.get_query_arguments("goal"):
            name, _, goal = text.rpartition(":")
            if name and goal in GOALS:
                yield name, GOALS[goal]


def rows_of(found: RunComparison, labels: Sequence[str]) -> tuple[RunRow, ...]:
    """Return a row for each job."""
    return tuple(
        RunRow(
            job.id,
            label,
            job.state.value,
            job.tags,
            job.note,
            tuple(row.values[place] for row in found.parameters),
            tuple(_cell(row.cells[place], row.goal) for row in found.metrics),
        )
        for place, (job, label) in enumerate(zip(found.jobs, labels, strict=True))
    )


def _cell(cell: MetricCell, goal: Goal | None) -> RunCell:
    shown = cell.last if goal is None else cell.best
    return RunCell("–" if shown is None else metric(shown.value), cell.is_best)
