"""The schedules: a file for each, written whole, with the results of its last times.

A time is recorded with the ID of its job before that job is accepted. After a crash the same job is
accepted for it, and none is submitted twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from benchpool_scheduler.contract.schedules import ScheduledOutcome
from benchpool_scheduler.contract.submission import JobSubmission
from benchpool_scheduler.store import whole_files

FOLDER = "schedules"
NAME = re.compile(rf"{FOLDER}/[a-z0-9]{{26}}\.json")
"""Pattern of the paths of these files in a backup."""
_FILE = re.compile(r"[a-z0-9]{26}\.json")


class TimeRecord(Struct, frozen=True, omit_defaults=True):
    """Time of a schedule that has come.

    Attributes:
        job: ID of its job, chosen before acceptance. ``accepted``: whether it was accepted.
        ended: How its job ended, kept when the job is removed.
    """

    at: float
    outcome: ScheduledOutcome
    job: str | None = None
    accepted: bool = False
    ended: str | None = None
    text: str = ""


class ScheduleRecord(Struct, frozen=True, omit_defaults=True):
    """Schedule of a job.

    Attributes:
        seen: All times up to this one are decided. ``last``: newest first, at most ten.
        paused: Why no job is submitted. ``owner_gone``: whether the missing owner is the reason.
        paused_at: When a user other than the owner paused it, epoch seconds; else None.
    """

    id: str
    name: str
    user: str
    project: str
    created: float
    when: str
    cron: str
    zone: str
    submission: JobSubmission
    seen: float
    key: str | None = None
    by_service: bool = False
    paused: str | None = None
    owner_gone: bool = False
    paused_at: float | None = None
    last: tuple[TimeRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleFiles:
    """Files below one folder. All methods block."""

    folder: Path

    def read(self) -> tuple[list[ScheduleRecord], list[str]]:
        """Return all schedules, and the names of unreadable files. Errors: OSError."""
        found, broken = [], []
        for file in sorted(self.folder.glob("*.json")):
            try:
                found.append(msgspec.json.decode(file.read_bytes(), type=ScheduleRecord))
            except msgspec.DecodeError:
                broken.append(file.name)
        return found, broken

    def write(self, schedule: ScheduleRecord) -> None:
        """Write a schedule durably. Errors: OSError."""
        whole_files.write(self._file(schedule.id), msgspec.json.encode(schedule))

    def remove(self, schedule: str) -> None:
        """Delete a schedule, if it exists. Errors: OSError."""
        self._file(schedule).unlink(missing_ok=True)

    def _file(self, schedule: str) -> Path:
        name = f"{schedule}.json"
        if not _FILE.fullmatch(name):
            raise ValueError(f"{schedule!r} is not the id of a schedule")
        return self.folder / name
