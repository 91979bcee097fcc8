"""Files of a folder that are not sent with a draft, reported among its problems."""

from __future__ import annotations

from benchpool.cells import Problem
from benchpool_scheduler.client.snapshot import FolderSnapshot


def of(files: FolderSnapshot | None) -> tuple[Problem, ...]:
    """Return what is sent and what is not, or nothing if everything is sent."""
    return tuple(Problem("info", each) for each in (files.sentences() if files else ()))
