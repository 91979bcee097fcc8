"""Locations of a job's files in the state folder.

    objects/ab/abcdef...                 contents of snapshots
    jobs/JOB/checkpoint, output          shared by all attempts and workers
    jobs/JOB/attempts/N/worker-I/        records and log of one worker, and its own:
        exchange/                        notice and progress file
        files/                           its copy of the snapshot

Folders that the worker may write to are separate from the trusted records.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import records
from .log_files import HEAD, MARKS, PREFIX
from .worker_id import WorkerId

_JOB = re.compile(r"[a-z0-9]{1,64}")
_WORKER = re.compile(r"worker-(0|[1-9][0-9]{0,5})")
_ATTEMPT = re.compile(r"[1-9][0-9]{0,8}")

Part = Literal["checkpoints", "results", "logs"]
"""A kind of files of a job that has its own retention time."""

CARRIED: dict[str, tuple[str, str]] = {
    "checkpoints": ("checkpoint", "checkpoint-*.tar"),
    "results": ("output", "results-*.tar"),
}
"""Locations of a kind of files below a job: its folder, and its archives below ``carried``."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Paths below one state folder; pure except for the methods that create, list or delete."""

    state: Path

    @property
    def jobs(self) -> Path:
        """Folder of all jobs."""
        return self.state / "jobs"

    @property
    def objects(self) -> Path:
        """Folder of contents, by hash."""
        return self.state / "objects"

    def job(self, job: str) -> Path:
        """Return the folder of a job. Raises ValueError for an ID that could lead elsewhere."""
        if not _JOB.fullmatch(job):
            raise ValueError(f"{job!r} is not a job id")
        return self.jobs / job

    def checkpoint(self, job: str) -> Path:
        """Return the checkpoint folder, shared by all attempts."""
        return self.job(job) / "checkpoint"

    def output(self, job: str) -> Path:
        """Return the folder of results for the submitter."""
        return self.job(job) / "output"

    def packed_results(self, job: str, worker: int) -> Path:
        """Return the path of packed results (tar) that could not be copied to the submitter."""
        return self.job(job) / "carried" / f"results-{worker}.tar"

    def find_packed_results(self, job: str, worker: int) -> Path | None:
        """Return the path of packed results if the file exists, or None."""
        packed = self.packed_results(job, worker)
        return packed if packed.is_file() else None

    def worker(self, worker: WorkerId) -> Path:
        """Return the folder of one worker's records and log. Raises ValueError."""
        attempt, index = str(worker.attempt), f"worker-{worker.worker}"
        if not _ATTEMPT.fullmatch(attempt) or not _WORKER.fullmatch(index):
            raise ValueError(f"{worker} is not a worker")
        return self.job(worker.job) / "attempts" / attempt / index

    def exchange(self, worker: WorkerId) -> Path:
        """Return the folder of notice and progress file, which the worker may write to."""
        return self.worker(worker) / records.EXCHANGE

    def make(self, worker: WorkerId, *, passable: bool) -> Path:
        """Create the worker's folder; ``passable`` lets other accounts traverse it, not list it."""
        target = self.worker(worker)
        mode = 0o711 if passable else 0o700
        missing = [self.jobs, *reversed(target.relative_to(self.jobs).parents), target]
        for folder in [self.jobs / part for part in missing]:
            folder.mkdir(mode=mode, parents=True, exist_ok=True)
            if passable:
                folder.chmod(mode)
        return target

    def workers(self) -> Iterator[WorkerId]:
        """Yield all workers that have a folder."""
        for job in _names(self.jobs, _JOB):
            attempts = self.jobs / job / "attempts"
            for attempt in _names(attempts, _ATTEMPT):
                for name in _names(attempts / attempt, _WORKER):
                    yield WorkerId(job, int(attempt), int(name.removeprefix("worker-")))

    def lying(self, job: str, part: Part) -> list[Path]:
        """Return the existing paths of one kind of files of a job."""
        if part == "logs":
            return [path for folder in self._logged(job) for path in _log_files(folder)]
        folder_name, archives = CARRIED[part]
        folder = self.job(job) / folder_name
        packed = sorted(self.job(job).glob(f"carried/{archives}"))
        return [folder, *packed] if os.path.lexists(folder) else packed

    def prune(self, jobs: Iterable[str], part: Part) -> None:
        """Delete one kind of files of jobs, following no link; their records are kept."""
        for job in jobs:
            self._prune(job, part)

    def _prune(self, job: str, part: Part) -> None:
        if part == "logs":
            for path in self.lying(job, part):
                path.unlink(missing_ok=True)
            return
        folder_name, archives = CARRIED[part]
        shutil.rmtree(self.job(job) / folder_name, ignore_errors=True)
        for packed in self.job(job).glob(f"carried/{archives}"):
            packed.unlink(missing_ok=True)

    def _logged(self, job: str) -> list[Path]:
        found = self.job(job).glob("attempts/*/worker-*")
        return [folder for folder in found if not folder.is_symlink()]

    def remove(self, job: str) -> None:
        """Delete all files of a job, following no link."""
        shutil.rmtree(self.job(job), ignore_errors=True)


def _log_files(folder: Path) -> list[Path]:
    names = os.listdir(folder)
    return [folder / name for name in names if name in (HEAD, MARKS) or name.startswith(PREFIX)]


def _names(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if pattern.fullmatch(name))
    except OSError:
        return []
