"""Jobs that report to real trackers, in a pool with real workers; and what the trackers show.

The trackers have an environment of their own (``make test-trackers``), whose Python runs the jobs.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchpool_scheduler.contract import CommandEntry, Job, JobSubmission, State
from benchpool_support import checkout
from benchpool_support.serving import Served, served
from benchpool_support.waiting import until

CODE = checkout.ROOT / "tests" / "trackers" / "code"
TURN, PAUSES = 5, 5
"""Steps of an attempt, and number of pauses; as in ``code/train.py``."""
PUBLIC = "https://hub.example/services/benchpool"
PATIENCE_S = 300.0
"""Limit of a wait for an attempt, which imports all trackers, in seconds."""


def environment() -> Path:
    """Return the environment of the trackers. Raises AssertionError if it was not made."""
    found = checkout.ROOT / f".venv-trackers{os.environ.get('TRACKERS_KIND', '')}"
    assert found.is_dir(), f"{found} does not exist: run make test-trackers"
    return found


@dataclass(frozen=True)
class TrackedSite:
    """Pool, and a user's folder with the stores of the trackers.

    Attributes:
        python: Python with the trackers.
    """

    pool: Served
    folder: Path
    python: Path

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment of a job: stores in the user's folder, no accounts, no telemetry."""
        return {
            "HOME": str(self.folder),
            "MLFLOW_TRACKING_URI": f"sqlite:///{self.folder}/mlflow.db",
            "TRACKIO_DIR": str(self.folder / "trackio"),
            "WANDB_MODE": "offline",
            "WANDB_SILENT": "true",
            "WANDB_ERROR_REPORTING": "false",
            "DO_NOT_TRACK": "true",
        }

    def send(
        self, *words: str, workers: int = 1, env: Mapping[str, str] = MappingProxyType({})
    ) -> Job:
        """Send the training of ``code/train.py`` with its options, and further variables."""
        argv = [str(self.python), str(CODE / "train.py"), *words]
        with self.pool.client("susan") as susan:
            return susan.submit(
                JobSubmission(
                    entry=CommandEntry(argv),
                    name="train",
                    workers=workers,
                    working_dir=str(self.folder),
                    output_dir=str(self.folder / "benchpool-results" / "train"),
                    env={**self.variables, **env},
                )
            )

    def job(self, job: Job) -> Job:
        """Return a job as it is now."""
        with self.pool.client("susan") as susan:
            return susan.job(job.id).job

    def log(self, job: Job) -> str:
        """Return the log of the newest attempt."""
        with self.pool.client("susan") as susan:
            return susan.log(job.id).data.decode(errors="replace")

    def steps_done(self, job: Job, attempt: int, steps: int) -> None:
        """Wait until an attempt has done its steps. Raises Overdue, with the end of the log."""
        line = f"attempt {attempt} has done {steps} steps"
        until(lambda: self.log(job), line, PATIENCE_S, holds=lambda log: line in log)

    def comes_to(self, job: Job, *states: State) -> Job:
        """Wait until a job has one of these states."""
        names = " or ".join(states)
        return until(
            lambda: self.job(job), f"it is {names}", PATIENCE_S, holds=lambda it: it.state in states
        )

    def pause(self, job: Job) -> Job:
        """Pause a job and wait until it is paused."""
        with self.pool.client("susan") as susan:
            susan.pause(job.id)
        return self.comes_to(job, State.PAUSED)

    def resume(self, job: Job) -> None:
        """Resume a paused job."""
        with self.pool.client("susan") as susan:
            susan.resume(job.id)

    def cancel(self, job: Job) -> Job:
        """Cancel a job and wait until it is cancelled."""
        with self.pool.client("susan") as susan:
            susan.cancel(job.id)
        return self.comes_to(job, State.CANCELLED)

    def paused_often(
        self, job: Job, pauses: int = PAUSES, *, during: Callable[[int], object] | None = None
    ) -> Job:
        """Pause and resume a job after each turn, and return it when it has ended.

        Args:
            during: Called in each pause, with its number from 1.
        """
        for attempt in range(1, pauses + 1):
            self.steps_done(job, attempt, attempt * TURN)
            self.pause(job)
            if during is not None:
                during(attempt)
            self.resume(job)
        return self.comes_to(job, State.SUCCEEDED, State.FAILED)

    def shown(self, *trackers: str, **env: str) -> dict[str, list[dict[str, Any]]]:
        """Return the runs that the trackers show: see ``code/shown.py``."""
        results = str(self.folder / "benchpool-results")
        own = {"SHOWN_WANDB": results, "SHOWN_TENSORBOARD": results}
        done = subprocess.run(
            [self.python, CODE / "shown.py", *trackers],
            env={"PATH": os.environ["PATH"], **self.variables, **own, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
        return found


@contextmanager
def tracked_site(root: Path, python: Path) -> Iterator[TrackedSite]:
    """Serve a pool with a user's folder.

    Args:
        root: Folder for both.
        python: Python that has the trackers.
    """
    folder = root / "home"
    folder.mkdir(parents=True)
    with served(root / "state", base_url=PUBLIC) as pool:
        yield TrackedSite(pool, folder, python)
