"""Sweeps: the same script or notebook with many values."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from benchpool import dry_runs, file_drafts, handles
from benchpool.drafts import Draft
from benchpool_scheduler.client import snapshot, sweep_plans
from benchpool_scheduler.contract.sweeps import (
    Sweep,
    SweepPlan,
    SweepRequest,
    SweepState,
    SweepStop,
    TrialRow,
)
from benchpool_scheduler.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from benchpool.dry_runs import DryRun
    from benchpool.handles import JobHandle

LOOK_S = 2.0
"""Poll interval while waiting for a sweep, in seconds."""

PLAN = frozenset(
    {"method", "metric", "goal", "trials", "at_once", "stop_early", "gpu_hours", "good_enough",
     "patience", "sweep_seed"}
)  # fmt: skip
"""Keywords of ``sweep`` for the plan; the others are those of ``submit``."""


class SweepHandle:
    """Sweep of the pool, with its trials, the best of them, and a method to stop it.

    Attributes:
        facts: The sweep as last read.
    """

    def __init__(self, facts: Sweep) -> None:
        self.facts = facts

    @property
    def id(self) -> str:
        """Sweep ID."""
        return self.facts.id

    @property
    def state(self) -> str:
        """Present state, read from the pool: ``running``, ``ending`` or ``over``."""
        return self.refresh().facts.state.value

    @property
    def trials(self) -> list[TrialRow]:
        """Trials of the sweep, the best first."""
        return self.refresh().facts.trials

    @property
    def best(self) -> JobHandle:
        """Job of the best trial.

        Raises:
            NotFound: No trial with a job has reported the metric yet.
        """
        facts = self.refresh().facts
        row = next((one for one in facts.trials if one.number == facts.best), None)
        if row is None or row.job is None:
            raise NotFound(
                f"No trial of {facts.name} has both a value and a job: {facts.text}", field="best"
            )
        return handles.job(row.job)

    def refresh(self) -> Self:
        """Read the sweep again and return it."""
        self.facts = handles.client().sweep(self.id)
        return self

    def wait(self) -> Self:
        """Wait until all trials have ended and return the sweep."""
        while self.refresh().facts.state is not SweepState.OVER:
            time.sleep(LOOK_S)
        return self

    def stop(
        self, *, let_finish: bool = False, keep_best: bool = False, reason: str | None = None
    ) -> Self:
        """Stop the sweep: start no further trials, and end the running ones.

        Args:
            let_finish: Let running trials finish. ``keep_best``: let only the best one finish.
            reason: Shown to the owner of the sweep.

        Raises:
            InvalidInput: ``keep_best``, and no trial has reported the metric yet.
        """
        asked = SweepStop(let_finish, keep_best, reason)
        self.facts = handles.client().stop_sweep(self.id, asked)
        return self

    def table(self) -> Any:
        """Return a row for each trial, the best first, as a DataFrame if pandas is installed."""
        rows = [
            {"trial": one.number, **one.parameters, "state": one.state, "step": one.step,
             self.facts.plan.metric or "value": one.value, "gpu_hours": one.gpu_hours}
            for one in self.trials
        ]  # fmt: skip
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        return f"{self.id[:8]} {self.facts.name}: {self.facts.text}"


@overload
def sweep(
    what: str | os.PathLike[str],
    /,
    *args: object,
    values: Mapping[str, sweep_plans.Written],
    key: str | None = None,
    trial_hours: float | None = None,
    trial_steps: int | None = None,
    dry_run: Literal[False] = False,
    **options: Any,
) -> SweepHandle: ...


@overload
def sweep(
    what: str | os.PathLike[str],
    /,
    *args: object,
    values: Mapping[str, sweep_plans.Written],
    key: str | None = None,
    trial_hours: float | None = None,
    trial_steps: int | None = None,
    dry_run: Literal[True],
    **options: Any,
) -> DryRun: ...


def sweep(
    what: str | os.PathLike[str],
    /,
    *args: object,
    values: Mapping[str, sweep_plans.Written],
    key: str | None = None,
    trial_hours: float | None = None,
    trial_steps: int | None = None,
    dry_run: bool = False,
    **options: Any,
) -> SweepHandle | DryRun:
    """Submit a script or a notebook many times with different values, and return the sweep.

    Prints the expected cost before it sends anything.

    Args:
        what: A ``.py`` or ``.ipynb`` file. In the arguments of a script, ``{lr}`` stands for the
            value of ``lr``. If no argument names a value, ``--lr=0.01`` and so on are added. A
            notebook gets the values as parameters.
        args: Arguments of a script.
        values: Values by name: a list, or a string such as ``"log:3e-5:3e-3"`` or ``"0..4"``.
        key: Makes a retry with the same key harmless.
        trial_hours: Hours of a complete trial, for the expected cost; by default those of your
            similar jobs. ``trial_steps``: its steps, to count what ``stop_early`` saves.
        dry_run: Send nothing, and return a preview: ``facts`` has the expected cost and the values
            of the first trials.
        options: Options of the plan, as in ``benchpool submit --sweep``: ``metric``, ``goal``,
            ``method``, ``trials``, ``at_once``, ``stop_early``, ``gpu_hours``, ``good_enough``,
            ``patience`` and ``sweep_seed``. All others are options of ``submit``.

    Raises:
        InvalidInput: The file does not exist, or a value is invalid.
        Refused: A rule of the pool rejects the sweep. The message has the numbers.
    """
    plan = sweep_plans.plan_of(
        values, **{name: one for name, one in options.items() if name in PLAN}
    )
    asked = {name: one for name, one in options.items() if name not in PLAN}
    draft = file_drafts.draft_of(Path(what), args, asked, key or uuid.uuid4().hex)
    request = request_of(draft, plan, key, trial_hours=trial_hours, trial_steps=trial_steps)
    return dry_runs.of_sweep(request) if dry_run else begin(draft, request)


def request_of(
    draft: Draft,
    plan: SweepPlan,
    key: str | None = None,
    *,
    trial_hours: float | None = None,
    trial_steps: int | None = None,
) -> SweepRequest:
    """Return the sweep of a draft, and report its problems. Raises the errors of ``sweep``."""
    if draft.selection is not None and not plan.array:
        sweep_plans.check_names(plan.parameters, [one.name for one in draft.parameters])
    if draft.selection is None and draft.given:
        raise InvalidInput("A script takes arguments, not parameters.", field="parameters")
    handles.report_problems(draft)
    submission = draft.submission
    return SweepRequest(submission, plan, submission.name, key, trial_hours, trial_steps)


def begin(draft: Draft, request: SweepRequest) -> SweepHandle:
    """Print the expected cost of a sweep and start it. Raises the errors of ``sweep``."""
    print(handles.client().preview_sweep(request).text, file=sys.stderr)
    snapshot.upload(handles.client(), draft.contents)
    return SweepHandle(handles.client().begin_sweep(request))
