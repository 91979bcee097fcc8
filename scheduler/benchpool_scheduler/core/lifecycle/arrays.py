"""An array that a job waits for as a whole: how far its tasks are, and how it ended.

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
    """A task that has begun.

    Attributes:
        number: Its number in the array. ``job``: the id of its job.
        outcome: The state in which it ended, None before.
    """

    number: int
    job: str
    outcome: JobState | None = None


@dataclass(frozen=True, slots=True)
class ArrayStanding:
    """An array as it is now.

    Attributes:
        size: So many tasks it has. ``at_once``: so many of them run at most at a time.
        tasks: Those that have begun, in the order in which they did.
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
        """The tasks that have begun and not ended."""
        return [task for task in self.tasks if task.outcome is None]

    @property
    def unbegun(self) -> int:
        """So many tasks are still to begin."""
        return 0 if self.stopped else self.size - len(self.tasks)

    @property
    def left(self) -> int:
        """So many tasks have not ended, and will."""
        return len(self.open) + self.unbegun

    @property
    def cut_short(self) -> bool:
        """Whether some of its tasks never begin."""
        return self.stopped and len(self.tasks) < self.size

    @property
    def unsuccessful(self) -> ArrayTask | None:
        """The first task that has ended without success."""
        ended = (JobState.FAILED, JobState.CANCELLED)
        return next((task for task in self.tasks if task.outcome in ended), None)

    def outcome(self, *, any_end: bool = False) -> JobState | None:
        """Return how it ended, None before: failed or cancelled as its first such task.

        Args:
            any_end: Wait until all tasks have ended; else one without success decides at once.
        """
        if any_end and self.left:
            return None
        if self.unsuccessful is not None:
            return self.unsuccessful.outcome
        if self.cut_short:
            return JobState.CANCELLED
        return None if self.left else JobState.SUCCEEDED
