"""Processes of jobs whose folder is gone, as after the loss of a disk.

No later start of benchpool can find such a job, whether it runs or not.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.worker import records
from benchpool_scheduler.worker.folders import Folders


@dataclass(frozen=True, slots=True)
class Orphan:
    """A process of a worker that has no folder.

    Attributes:
        job: ID of its job.
        name: Name of its job.
    """

    pid: int
    job: str
    name: str


def find(state: Path) -> list[Orphan]:
    """Return the processes of a state folder's jobs whose folder is missing, by pid.

    Without root permissions, processes of other accounts are not found. A process that cleared its
    environment is never found.
    """
    jobs = re.escape(str(Folders(state.absolute()).jobs))
    notice = re.compile(rf"({jobs}/([a-z0-9]+)/attempts/\d+/worker-\d+)/exchange/{records.NOTICE}")
    found: list[Orphan] = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            words = (process / "environ").read_bytes().decode(errors="replace").split("\0")
            variables = dict(word.split("=", 1) for word in words if "=" in word)
            match = notice.fullmatch(variables.get("BENCHPOOL_NOTICE_FILE", ""))
            if match and not Path(match[1]).exists():
                name = variables.get("BENCHPOOL_JOB_NAME", "")
                found.append(Orphan(int(process.name), match[2], name))
    return sorted(found, key=lambda one: one.pid)
