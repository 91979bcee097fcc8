"""What is kept of a job that another one waits for."""

from __future__ import annotations

from msgspec import Struct

from benchpool_scheduler.core.lifecycle.states import JobState


class Awaited(Struct, frozen=True, omit_defaults=True):
    """A job that another one waits for, or an array as a whole.

    Attributes:
        name: As it was when the other was sent. ``outcome``: the state in which it ended, None
            before; kept when the job itself is removed.
        tasks: So many tasks the array has whose id ``job`` then is; 0 for a job.
    """

    job: str
    name: str = ""
    outcome: JobState | None = None
    tasks: int = 0
