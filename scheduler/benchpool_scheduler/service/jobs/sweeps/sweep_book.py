"""All sweeps that are known, in memory and in files; a change is on disk before it is seen."""

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
    """The sweeps by id, and to which sweep a job belongs.

    Attributes:
        changed: News of each sweep that was kept as it is now: its id.

    Args:
        report: Told what is wrong with the files, None when it is well.
    """

    def __init__(self, folder: Path, report: Callable[[str, str | None], None]) -> None:
        self._files = SweepFiles(folder)
        self._report = report
        self._sweeps: dict[str, SweepRecord] = {}
        self._of_job: dict[str, TrialPlace] = {}
        self._writing = asyncio.Lock()
        self.changed: Topic[str] = Topic()

    async def open(self) -> None:
        """Read the files. What cannot be read is told, and stays where it is."""
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
        """Return a sweep by its id."""
        return self._sweeps.get(sweep)

    def all(self) -> Iterator[SweepRecord]:
        """Return all sweeps, newest first."""
        yield from sorted(self._sweeps.values(), key=lambda it: (-it.created, it.id))

    def under_way(self) -> list[SweepRecord]:
        """Return those that are not over, oldest first."""
        return [it for it in reversed(list(self.all())) if it.over is None]

    def by_key(self, user: str, key: str) -> SweepRecord | None:
        """Return the sweep that a user sent with a key."""
        return next((it for it in self._sweeps.values() if (it.user, it.key) == (user, key)), None)

    def of_job(self, job: str) -> TrialPlace | None:
        """Return as which trial of which sweep a job runs."""
        return self._of_job.get(job)

    async def put(self, sweep: SweepRecord) -> None:
        """Keep a sweep as it is now. Errors: Unavailable, then it is as it was."""
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
        """Forget a sweep. Errors: OSError."""
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
