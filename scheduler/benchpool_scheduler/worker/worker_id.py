"""Identity of a worker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class WorkerId:
    """Identity of a process group: job, attempt (from 1) and index of the worker (from 0)."""

    job: str
    attempt: int
    worker: int
