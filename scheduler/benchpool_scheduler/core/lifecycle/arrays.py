"""State of a job array that another job waits for: progress and outcome.

>>> done, failed = JobState.SUCCEEDED, JobState.FAILED
>>> def folds(*outcomes, size=4):
...     tasks = tuple(ArrayTask(n, f"j{n}", it) for n, it in enumerate(outcomes))
...     return ArrayStanding("k7", "folds", "susan", size, at_once=2, tasks=tasks)
>>> folds(done, done, None).left, folds(done, done, None).outcome()
(2, None)
>>> str(folds(done, done, done, done).outcome())
'succeeded'
>>> str(folds(done, failed, None).outcome()), folds(done, failed, None).outcome(any_end=True)
('failed', None)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.core.lifecycle.states import JobState


@dataclass(frozen=True, slots=True)
class ArrayTask:
    """A task of an array that has begun.

    Attributes:
        number: Its number in the array.
        job: ID of its job.
        outcome: State in which it ended, or None before.
    """

    number: int
    job: str
    outcome: JobState | None = None


@dataclass(frozen=True, slots=True)
class ArrayStanding:
    """Present state of an array.

    Attributes:
        size: Number of tasks.
        at_once: Limit on concurrent tasks.
        tasks: Tasks that have begun, in that order.
        stopped: No further task begins.
    """

    id: str
    name: str
    user: str
    size: int
    at_once: int
    tasks: Sequence[ArrayTask] = ()
    stopped: bool = False

    @property
    def open(self) -> list[ArrayTask]:
        """Return the tasks that have begun and not ended."""
        return [task for task in self.tasks if task.outcome is None]

    @property
    def unbegun(self) -> int:
        """Return the number of tasks that are still to begin."""
        return 0 if self.stopped else self.size - len(self.tasks)

    @property
    def left(self) -> int:
        """Return the number of tasks that have not ended yet."""
        return len(self.open) + self.unbegun

    @property
    def cut_short(self) -> bool:
        """Return whether some of its tasks will never begin."""
        return self.stopped and len(self.tasks) < self.size

    @property
    def unsuccessful(self) -> ArrayTask | None:
        """Return the first task that ended without success, or None."""
        ended = (JobState.FAILED, JobState.CANCELLED)
        return next((task for task in self.tasks if task.outcome in ended), None)

    def outcome(self, *, any_end: bool = False) -> JobState | None:
        """Return the outcome of the array, or None before its end.

        An unsuccessful array ends like its first unsuccessful task.

        Args:
            any_end: Wait until all tasks have ended. Otherwise one without success decides at once.
        """
        if any_end and self.left:
            return None
        if self.unsuccessful is not None:
            return self.unsuccessful.outcome
        if self.cut_short:
            return JobState.CANCELLED
        return None if self.left else JobState.SUCCEEDED
