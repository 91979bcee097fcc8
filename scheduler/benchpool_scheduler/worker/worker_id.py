"""Which worker of which job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class WorkerId:
    """Which process group: the job, its attempt (from 1) and the worker's index (from 0)."""

    job: str
    attempt: int
    worker: int
