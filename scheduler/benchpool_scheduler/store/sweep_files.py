"""The sweeps: a file for each, written whole, with the values of every trial and its job.

A trial is recorded with the ID of its job before that job is accepted. After a crash the same job
is accepted for it, and no trial is lost or doubled.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from benchpool_scheduler.contract.submission import JobSubmission
from benchpool_scheduler.contract.sweeps import Scalar, SweepPlan
from benchpool_scheduler.store import whole_files

FOLDER = "sweeps"
NAME = re.compile(rf"{FOLDER}/[a-z0-9]{{26}}\.json")
"""Pattern of the paths of these files in a backup."""
_FILE = re.compile(r"[a-z0-9]{26}\.json")


class RungRecord(Struct, frozen=True):
    """First report of a trial at a rung of early stopping.

    Attributes:
        value: None if it was not a number.
        at: Time of the report, in epoch seconds.
    """

    step: int
    value: float | None
    at: float


class TrialRecord(Struct, frozen=True, omit_defaults=True):
    """Trial of a sweep; its result outlives its job.

    Attributes:
        ended: State at its end, None before.
        value: Its objective at the end, at ``step``.
        rungs: Rungs at which it was judged, and is not judged again.
    """

    job: str
    parameters: dict[str, Scalar]
    ended: str | None = None
    value: float | None = None
    step: int | None = None
    gpu_hours: float = 0.0
    rungs: tuple[RungRecord, ...] = ()


class SweepRecord(Struct, frozen=True, omit_defaults=True):
    """Sweep of a job.

    Attributes:
        by_service: Whether ``user`` is a service of the Hub.
        stopped_by: The user who stopped further trials; ``let_finish``: whether running trials
            continue. ``kept``: number of the only trial that continues.
        over: When its last trial had ended.
    """

    id: str
    name: str
    user: str
    project: str
    created: float
    plan: SweepPlan
    submission: JobSubmission
    key: str | None = None
    by_service: bool = False
    trials: tuple[TrialRecord, ...] = ()
    stopped_by: str | None = None
    let_finish: bool = False
    kept: int | None = None
    over: float | None = None


@dataclass(frozen=True, slots=True)
class SweepFiles:
    """Files below one folder. All methods block."""

    folder: Path

    def read(self) -> tuple[list[SweepRecord], list[str]]:
        """Return all sweeps, and the names of unreadable files. Errors: OSError."""
        found, broken = [], []
        for file in sorted(self.folder.glob("*.json")):
            try:
                found.append(msgspec.json.decode(file.read_bytes(), type=SweepRecord))
            except msgspec.DecodeError:
                broken.append(file.name)
        return found, broken

    def write(self, sweep: SweepRecord) -> None:
        """Write a sweep durably. Errors: OSError."""
        whole_files.write(self._file(sweep.id), msgspec.json.encode(sweep))

    def remove(self, sweep: str) -> None:
        """Delete a sweep, if it exists. Errors: OSError."""
        self._file(sweep).unlink(missing_ok=True)

    def _file(self, sweep: str) -> Path:
        name = f"{sweep}.json"
        if not _FILE.fullmatch(name):
            raise ValueError(f"{sweep!r} is not the id of a sweep")
        return self.folder / name


def copy_into(sweeps: Path, folder: Path) -> int:
    """Copy these files into a folder and return their number. Errors: OSError."""
    copied = 0
    for file in sorted(sweeps.glob("*.json")):
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            whole_files.write(folder / file.name, file.read_bytes())
            copied += 1
    return copied


def put_back(copy: Path, sweeps: Path) -> int:
    """Restore missing files and return their number. Errors: OSError."""
    missing = [it for it in sorted(copy.glob("*.json")) if not (sweeps / it.name).exists()]
    for file in missing:
        whole_files.write(sweeps / file.name, file.read_bytes())
    return len(missing)
