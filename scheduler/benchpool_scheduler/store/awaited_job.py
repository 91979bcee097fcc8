"""What the store keeps of a job that another job waits for."""

from __future__ import annotations

from msgspec import Struct

from benchpool_scheduler.core.lifecycle.states import JobState


class Awaited(Struct, frozen=True, omit_defaults=True):
    """Job, or array as a whole, that another job waits for.

    Attributes:
        name: Its name when the waiting job was submitted.
        outcome: State in which it ended, None before; kept when the job itself is removed.
        tasks: Number of tasks of the array whose ID is ``job``; 0 for a single job.
    """

    job: str
    name: str = ""
    outcome: JobState | None = None
    tasks: int = 0
