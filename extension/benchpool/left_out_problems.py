"""What of a folder does not travel with a draft, among what is said of it."""

from __future__ import annotations

from benchpool.cells import Problem
from benchpool_scheduler.client.snapshot import FolderSnapshot


def of(files: FolderSnapshot | None) -> tuple[Problem, ...]:
    """Return what travels and what does not; nothing when all does."""
    return tuple(Problem("info", each) for each in (files.sentences() if files else ()))
