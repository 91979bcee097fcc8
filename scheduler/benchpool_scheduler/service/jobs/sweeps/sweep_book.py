"""All known sweeps, in memory and in files; a change is on disk before it is visible."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

from benchpool_scheduler.contract.jobs import TrialPlace
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.phrases import visible
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.store.sweep_files import SweepFiles, SweepRecord


class SweepBook:
    """The sweeps by ID, and the sweep of each trial's job.

    Attributes:
        changed: Publishes the ID of each sweep that was saved.

    Args:
        report: Called with a problem of the files, or None if there is none.
    """

    def __init__(self, folder: Path, report: Callable[[str, str | None], None]) -> None:
        self._files = SweepFiles(folder)
        self._report = report
        self._sweeps: dict[str, SweepRecord] = {}
        self._of_job: dict[str, TrialPlace] = {}
        self._writing = asyncio.Lock()
        self.changed: Topic[str] = Topic()

    async def open(self) -> None:
        """Read the files. Unreadable ones are reported and left in place."""
        try:
            found, broken = await asyncio.to_thread(self._files.read)
        except OSError as failed:
            self._report("sweeps", f"Sweeps cannot be read ({failed.strerror}).")
            return
        for sweep in found:
            self._know(sweep)
        self._report(
            "sweeps", f"These sweeps cannot be read: {', '.join(broken)}." if broken else None
        )

    def get(self, sweep: str) -> SweepRecord | None:
        """Return a sweep by its ID, or None."""
        return self._sweeps.get(sweep)

    def all(self) -> Iterator[SweepRecord]:
        """Return all sweeps, newest first."""
        yield from sorted(self._sweeps.values(), key=lambda it: (-it.created, it.id))

    def under_way(self) -> list[SweepRecord]:
        """Return the sweeps that are not over, oldest first."""
        return [it for it in reversed(list(self.all())) if it.over is None]

    def by_key(self, user: str, key: str) -> SweepRecord | None:
        """Return the sweep that a user created with a key, or None."""
        return next((it for it in self._sweeps.values() if (it.user, it.key) == (user, key)), None)

    def of_job(self, job: str) -> TrialPlace | None:
        """Return the sweep and trial that a job belongs to, or None."""
        return self._of_job.get(job)

    async def put(self, sweep: SweepRecord) -> None:
        """Save a sweep. Errors: Unavailable, and then nothing changes."""
        async with self._writing:
            try:
                await asyncio.to_thread(self._files.write, sweep)
            except OSError as failed:
                raise Unavailable(
                    f"The sweep could not be stored ({failed.strerror}); try again.",
                    code="not-stored",
                ) from None
            self._know(sweep)
        self.changed.publish(sweep.id)

    async def drop(self, sweep: SweepRecord) -> None:
        """Remove a sweep. Errors: OSError."""
        async with self._writing:
            await asyncio.to_thread(self._files.remove, sweep.id)
            del self._sweeps[sweep.id]
            for trial in sweep.trials:
                self._of_job.pop(trial.job, None)

    def _know(self, sweep: SweepRecord) -> None:
        self._sweeps[sweep.id] = sweep
        for number, trial in enumerate(sweep.trials):
            self._of_job[trial.job] = TrialPlace(
                sweep.id, visible(sweep.name), number, sweep.plan.array
            )
