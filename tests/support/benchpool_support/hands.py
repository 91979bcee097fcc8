"""Statements of workers and notebook servers about themselves, independent of any service.

Each process holds a kernel lock on a file for every GPU it was given and for its own place in its
job. A lock ends with its process, however that ends. A process that finds a lock taken writes this
down. So the affected process detects a GPU that was assigned twice, or a job that runs twice.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EVENTS_FILE = "said"
"""File to which all processes write, one line of JSON each."""

HOLD = """\
import fcntl, json, os, time
from pathlib import Path

def say(folder, **what):
    line = json.dumps({"pid": os.getpid(), "at": time.time(), **what}) + "\\n"
    file = os.open(Path(folder) / "said", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
    os.close(file)

def hold(folder, names, who):
    for name in names:
        file = os.open(Path(folder) / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(folder, two=name, who=who)
            continue
        HELD.append(file)

HELD = []
GPUS = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
"""

WORKER = (
    HOLD
    + """
import hashlib, sys, time
from benchpool import checkpoint

folder, steps, code = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
job, rank = os.environ["BENCHPOOL_JOB_ID"], int(os.environ["NODE_RANK"])
attempt = int(os.environ["BENCHPOOL_ATTEMPT"])
about = {"job": job, "attempt": attempt, "rank": rank}
hold(folder, [f"job-{job}-{rank}", *GPUS], about)
say(folder, begun=about)
first, digest, saved = 0, "", checkpoint.latest()
if saved is not None:
    first, digest = json.loads((saved / "state.json").read_text())
for step in range(first, steps):
    stop = checkpoint.should_stop()
    if (stop or step % 25 == 0) and rank == 0:
        with checkpoint.commit(step) as into:
            (into / "state.json").write_text(json.dumps([step, digest]))
        checkpoint.progress(step / steps, f"step {step}")
    if stop:
        say(folder, paused=about, step=step)
        raise SystemExit(75)
    digest = hashlib.sha256(f"{digest}{step}".encode()).hexdigest()
    time.sleep(0.02)
say(folder, done=about, digest=digest, code=code)
raise SystemExit(code)
"""
)
"""Program of a job: ``python -c WORKER FOLDER STEPS EXIT_CODE``."""


def digest_of(steps: int) -> str:
    """Return the digest that a worker reports at its end if it was never disturbed.

    >>> digest_of(0), digest_of(2)[:8]
    ('', 'f3c1d279')
    """
    digest = ""
    for step in range(steps):
        digest = hashlib.sha256(f"{digest}{step}".encode()).hexdigest()
    return digest


def server_configuration(folder: Path) -> str:
    """Return a Jupyter configuration that a notebook server runs at its start."""
    return f"{HOLD}hold({str(folder)!r}, GPUS, {{'server': os.environ['JUPYTERHUB_USER']}})\n"


def still_held(folder: Path) -> list[str]:
    """Return the names whose locks a living process holds."""
    held = []
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(path.name)
    return held


@dataclass
class WorkerStatements:
    """All statements.

    Attributes:
        two: GPUs and places that were assigned twice.
        begun: Attempts that began, by job.
        done: Digest and exit code of the workers that finished, by job and attempt, by rank.
        done_at: Time of each finish, in epoch seconds.
    """

    two: list[dict[str, Any]] = field(default_factory=list)
    begun: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    done: dict[tuple[str, int], dict[int, tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    done_at: dict[tuple[str, int], dict[int, float]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    @classmethod
    def of(cls, folder: Path) -> WorkerStatements:
        """Read the statements of a folder."""
        found = cls()
        file = folder / EVENTS_FILE
        for line in file.read_text().splitlines() if file.exists() else ():
            found._take(json.loads(line))
        return found

    def _take(self, statement: Mapping[str, Any]) -> None:
        if "two" in statement:
            self.two.append(dict(statement))
        if (about := statement.get("begun")) is not None:
            self.begun[about["job"]].add(about["attempt"])
        if (about := statement.get("done")) is not None:
            ends = self.done[about["job"], about["attempt"]]
            ends[about["rank"]] = (statement["digest"], statement["code"])
            self.done_at[about["job"], about["attempt"]][about["rank"]] = statement["at"]

    def ends_of(self, job: str, workers: int) -> list[int]:
        """Return the attempts of a job in which all workers finished."""
        return sorted(
            attempt
            for (name, attempt), ranks in self.done.items()
            if name == job and len(ranks) >= workers
        )
