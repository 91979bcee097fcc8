"""Job arrays: run the same script, notebook or cell once for each task number."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchpool import file_drafts, handles, sweeps
from benchpool_scheduler.client import array_tasks
from benchpool_scheduler.contract.sweeps import TASK, Sweep, SweepState, TrialRow, tasks_of
from benchpool_scheduler.errors import NotFound

if TYPE_CHECKING:
    from benchpool.drafts import Draft
    from benchpool.handles import JobHandle
    from benchpool.keep import Keep
    from benchpool_scheduler.contract.sweeps import SweepRequest


class ArrayHandle(sweeps.SweepHandle):
    """Handle of an array: its tasks by number, awaited and stopped together.

    ``array[7]`` is the job of task 7. Iterating over an array yields its task numbers, smallest
    first.
    """

    def __getitem__(self, task: int) -> JobHandle:
        """Return the job of a task.

        Raises:
            NotFound: The task has no job, or none yet.
        """
        row = self._row(task) or self.refresh()._row(task)
        if row is not None and row.job is not None:
            return handles.job(row.job)
        raise NotFound(self._why_no_job(task, row), field="task")

    def __contains__(self, task: object) -> bool:
        return task in list(self)

    def __iter__(self) -> Iterator[int]:
        return iter(tasks_of(self.facts.plan))

    def __len__(self) -> int:
        return self.facts.size

    @property
    def states(self) -> dict[int, str]:
        """Return the state of each task by its number.

        A state is ``waiting`` before the task begins, then its job's state, then how it ended.
        """
        rows = {row.parameters[TASK]: row for row in self.trials}
        return {task: _state(rows.get(task)) for task in self}

    def _row(self, task: int) -> TrialRow | None:
        of_task = (row for row in self.facts.trials if row.parameters.get(TASK) == task)
        return next(of_task, None)

    def _why_no_job(self, task: int, row: TrialRow | None) -> str:
        name = self.facts.name
        if task not in self:
            return f"{name} has no task {task}. Its tasks are {_shown(self.facts)}."
        if row is None and self.facts.state is SweepState.RUNNING:
            return (
                f"Task {task} of {name} has not started: at most "
                f"{self.facts.plan.max_concurrent} run at a time. array.wait() waits for all."
            )
        return f"Task {task} of {name} has no job: {self.facts.text}"


def _state(row: TrialRow | None) -> str:
    if row is None:
        return "waiting"
    return row.job_state if row.state == "open" and row.job_state else row.state


def _shown(facts: Sweep) -> str:
    tasks = tasks_of(facts.plan)
    return ", ".join(map(str, tasks)) if len(tasks) <= 5 else f"{tasks[0]} … {tasks[-1]}"


def submit(
    what: Path,
    args: tuple[object, ...],
    options: Mapping[str, Any],
    text: str,
    *,
    key: str | None = None,
    keep: Keep | None = None,
) -> ArrayHandle:
    """Submit a script or a notebook as an array. Raises the errors of ``benchpool.submit``.

    Args:
        text: The tasks as in Slurm's ``--array``, such as ``"0-31%4"``.
    """
    plan = array_tasks.plan_of(text)
    draft = file_drafts.draft_of(what, args, options, key or uuid.uuid4().hex, keep)
    return begin(draft, sweeps.request_of(draft, plan, key))


def begin(draft: Draft, request: SweepRequest) -> ArrayHandle:
    """Start an array of a drafted job. Raises the errors of ``benchpool.submit``."""
    return ArrayHandle(sweeps.begin(draft, request).facts)
