"""All known schedules, in memory and in files; a change is on disk before it is visible."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

from benchpool_scheduler.contract import NotebookEntry
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.store.schedule_files import ScheduleFiles, ScheduleRecord


class ScheduleBook:
    """The schedules by ID.

    Args:
        report: Called with a problem of the files, or None if there is none.
    """

    def __init__(self, folder: Path, report: Callable[[str, str | None], None]) -> None:
        self._files = ScheduleFiles(folder)
        self._report = report
        self._schedules: dict[str, ScheduleRecord] = {}
        self._writing = asyncio.Lock()

    async def open(self) -> None:
        """Read the files. Unreadable ones are reported and left in place."""
        try:
            found, broken = await asyncio.to_thread(self._files.read)
        except OSError as failed:
            self._report("schedules", f"Schedules cannot be read ({failed.strerror}).")
            return
        self._schedules = {schedule.id: schedule for schedule in found}
        problem = f"These schedules cannot be read: {', '.join(broken)}." if broken else None
        self._report("schedules", problem)

    def get(self, schedule: str) -> ScheduleRecord | None:
        """Return a schedule by its ID, or None."""
        return self._schedules.get(schedule)

    def all(self) -> Iterator[ScheduleRecord]:
        """Return all schedules, newest first."""
        yield from sorted(self._schedules.values(), key=lambda it: (-it.created, it.id))

    def by_key(self, user: str, key: str) -> ScheduleRecord | None:
        """Return the schedule that a user created with a key, or None."""
        known = self._schedules.values()
        return next((it for it in known if (it.user, it.key) == (user, key)), None)

    def contents(self) -> set[str]:
        """Return the hashes of uploaded contents that future jobs need."""
        return {
            sha256 for schedule in self._schedules.values() for sha256 in _contents_of(schedule)
        }

    async def put(self, schedule: ScheduleRecord) -> None:
        """Save a schedule. Errors: Unavailable, and then nothing changes."""
        async with self._writing:
            try:
                await asyncio.to_thread(self._files.write, schedule)
            except OSError as failed:
                raise Unavailable(
                    f"The schedule could not be stored ({failed.strerror}); try again.",
                    code="not-stored",
                ) from None
            self._schedules[schedule.id] = schedule

    async def drop(self, schedule: ScheduleRecord) -> None:
        """Remove a schedule. Errors: Unavailable."""
        async with self._writing:
            try:
                await asyncio.to_thread(self._files.remove, schedule.id)
            except OSError as failed:
                raise Unavailable(
                    f"The schedule could not be removed ({failed.strerror}); try again.",
                    code="not-stored",
                ) from None
            self._schedules.pop(schedule.id, None)


def _contents_of(schedule: ScheduleRecord) -> Iterator[str]:
    entry = schedule.submission.entry
    if isinstance(entry, NotebookEntry):
        yield entry.notebook
    yield from (file.sha256 for file in schedule.submission.files)
