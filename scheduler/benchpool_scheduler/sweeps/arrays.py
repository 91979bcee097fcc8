"""Arrays: sweeps of task numbers, with environment variables for each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from benchpool_scheduler.contract.sweeps import (
    TASK,
    ListedValues,
    Scalar,
    SweepMethod,
    SweepPlan,
    tasks_of,
)
from benchpool_scheduler.errors import InvalidInput

PREFIXES = ("BENCHPOOL_ARRAY", "SLURM_ARRAY")
"""Prefixes of each variable: our own, and the one that programs from Slurm read."""


def check(plan: SweepPlan) -> None:
    """Reject an array with values other than task numbers. Errors: InvalidInput."""
    of = plan.parameters.get(TASK)
    numbers = of.values if isinstance(of, ListedValues) else []
    good = bool(numbers) and len(plan.parameters) == 1 and plan.method is SweepMethod.GRID
    if not good or any(type(one) is not int or one < 0 for one in numbers):
        raise InvalidInput(
            f"An array needs one parameter, {TASK}, with a list of whole numbers from 0 on, and "
            "the method grid.",
            field="array",
        )


def variables(array: str, plan: SweepPlan, values: Mapping[str, Scalar]) -> dict[str, str]:
    """Return the variables of a task.

    Args:
        array: Sweep ID of the array.
        values: Values of the task's trial.

    >>> plan = SweepPlan({TASK: ListedValues([4, 6, 8])}, array=True)
    >>> found = variables("k7", plan, {TASK: 6})
    >>> [found[f"SLURM_ARRAY_{name}"] for name in ("JOB_ID", "TASK_ID", "TASK_COUNT")]
    ['k7', '6', '3']
    >>> [found[f"BENCHPOOL_ARRAY_TASK_{name}"] for name in ("MIN", "MAX", "STEP")]
    ['4', '8', '2']
    """
    tasks = tasks_of(plan)
    facts = {
        "JOB_ID": array,
        "TASK_ID": values[TASK],
        "TASK_COUNT": len(tasks),
        "TASK_MIN": min(tasks),
        "TASK_MAX": max(tasks),
        "TASK_STEP": _step(tasks),
    }
    return {f"{prefix}_{name}": str(value) for prefix in PREFIXES for name, value in facts.items()}


def _step(tasks: Sequence[int]) -> int:
    """Return the step between two tasks if it is the same for all, else 1."""
    steps = {after - before for before, after in pairwise(tasks)}
    return steps.pop() if len(steps) == 1 else 1
