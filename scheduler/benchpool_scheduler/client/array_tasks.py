"""Task arrays in the syntax of Slurm's ``--array``. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchpool_scheduler.contract.sweeps import TASK, ListedValues, SweepPlan
from benchpool_scheduler.errors import InvalidInput

FORMS = "0-31, 1,3,7, 0-15:4 (every fourth), 0-31%4 (at most 4 at a time)"
MOST_TASKS = 1000
MOST_NUMBER = 10_000_000

_PART = re.compile(r"(\d{1,8})(?:-(\d{1,8})(?::(\d{1,8}))?)?")


def plan_of(text: str) -> SweepPlan:
    """Return the plan of an array: a sweep over one list of task numbers.

    Errors: InvalidInput.

    >>> plan = plan_of("0-31%4")
    >>> plan.max_concurrent, len(plan.parameters["array_task_id"].values)
    (4, 32)
    >>> plan_of("1,3,8-12:2").parameters["array_task_id"].values
    [1, 3, 8, 10, 12]
    >>> plan_of("1,3").max_concurrent
    2
    """
    listed, sign, most = text.replace(" ", "").partition("%")
    tasks = _tasks(listed, text)
    if sign and not (most.isdecimal() and 1 <= int(most) <= MOST_TASKS):
        raise InvalidInput(
            f"--array {text}: write the maximum number of concurrent tasks after %, from 1 to "
            f"{MOST_TASKS}, e.g. 0-31%4.",
            field="array",
        )
    return SweepPlan(
        parameters={TASK: ListedValues(list(tasks))},
        max_concurrent=int(most) if sign else len(tasks),
        array=True,
    )


def check_alone(beside: Sequence[str], where: str = "") -> None:
    """Refuse options that conflict with an array. Errors: InvalidInput.

    Args:
        beside: Names of the other options given.
        where: Prefix of the message.

    >>> check_alone([])
    >>> check_alone(["at_once"], "%%train: ")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    benchpool_scheduler.errors.InvalidInput: %%train: --at-once cannot be combined with --array. ...
    """
    if beside:
        raise InvalidInput(
            f"{where}--{beside[0].replace('_', '-')} cannot be combined with --array. Tasks differ "
            "only in their number, and %N is the maximum number of concurrent tasks.",
            field="array",
        )


def _tasks(listed: str, text: str) -> list[int]:
    """Return the task numbers without duplicates, in ascending order, as in Slurm."""
    found: set[int] = set()
    for part in listed.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise InvalidInput(f"--array {text} names no tasks. Write {FORMS}.", field="array")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1 or last > MOST_NUMBER:
            raise InvalidInput(
                f"--array {text}: {part} must go from a smaller number to a larger one, at most "
                f"{MOST_NUMBER}, in steps of at least 1.",
                field="array",
            )
        numbers = range(first, last + 1, step)
        if len(found) + len(numbers) > 2 * MOST_TASKS:
            raise _too_many(len(found) + len(numbers), text)
        found.update(numbers)
    if len(found) > MOST_TASKS:
        raise _too_many(len(found), text)
    return sorted(found)


def _too_many(tasks: int, text: str) -> InvalidInput:
    return InvalidInput(
        f"--array {text} names {tasks} tasks; the limit is {MOST_TASKS}. Send it in parts.",
        field="array",
        numbers={"tasks": tasks, "limit": MOST_TASKS},
    )
