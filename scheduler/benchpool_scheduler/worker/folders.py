"""Where everything of a job lies in the state folder.

    objects/ab/abcdef...                 contents of snapshots
    jobs/JOB/checkpoint, output          the same for all attempts and workers
    jobs/JOB/attempts/N/worker-I/        records and log of one worker; its own only:
        exchange/                        notice and progress file
        files/                           its copy of the snapshot

What the worker may write to is apart from the records that we trust.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import records
from .worker_id import WorkerId

_JOB = re.compile(r"[a-z0-9]{1,64}")
_WORKER = re.compile(r"worker-(0|[1-9][0-9]{0,5})")
_ATTEMPT = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Folders:
    """Paths below one state folder; pure except where a verb says otherwise."""

    state: Path

    @property
    def jobs(self) -> Path:
        """All jobs."""
        return self.state / "jobs"

    @property
    def objects(self) -> Path:
        """Contents by hash."""
        return self.state / "objects"

    def job(self, job: str) -> Path:
        """Everything of a job; an id that could lead elsewhere is a ValueError."""
        if not _JOB.fullmatch(job):
            raise ValueError(f"{job!r} is not a job id")
        return self.jobs / job

    def checkpoint(self, job: str) -> Path:
        """What every attempt finds again."""
        return self.job(job) / "checkpoint"

    def output(self, job: str) -> Path:
        """What goes back to the submitter."""
        return self.job(job) / "output"

    def worker(self, worker: WorkerId) -> Path:
        """Records and log of one worker."""
        attempt, index = str(worker.attempt), f"worker-{worker.worker}"
        if not _ATTEMPT.fullmatch(attempt) or not _WORKER.fullmatch(index):
            raise ValueError(f"{worker} is not a worker")
        return self.job(worker.job) / "attempts" / attempt / index

    def exchange(self, worker: WorkerId) -> Path:
        """Folder of notice and progress file, which the worker may write to."""
        return self.worker(worker) / records.EXCHANGE

    def make(self, worker: WorkerId, *, passable: bool) -> Path:
        """Make the worker's folder; ``passable`` lets other accounts walk through, not look in."""
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

    def remove(self, job: str) -> None:
        """Delete all files of a job, following no link."""
        shutil.rmtree(self.job(job), ignore_errors=True)


def _names(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if pattern.fullmatch(name))
    except OSError:
        return []
