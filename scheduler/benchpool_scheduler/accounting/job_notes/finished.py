"""What rules are given: an ended job, what was measured of it, and what the pool has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchpool_scheduler.contract.job_usage import JobMeasurements
from benchpool_scheduler.contract.spec import JobSpec

MEASURED = 0.9
"""What was measured for a smaller part of the time than this is used by no rule."""

MB = 1e6


@dataclass(frozen=True, slots=True)
class PoolSizes:
    """What a job may ask for in this pool: an advice never names more.

    Attributes:
        cpus: Processor cores of the largest machine for training, None for no bound that is known;
            ``memory_gib``: memory likewise. ``gpus``: GPUs of it.
        models: GiB of the GPUs for training, by their model, where it is known.
    """

    cpus: float | None = None
    memory_gib: float | None = None
    gpus: int = 0
    models: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """An ended job.

    Attributes:
        short_id: Its id as commands take it. ``failed``: it ended with an error.
        spec: What it asked for.
    """

    short_id: str
    failed: bool
    spec: JobSpec
    measured: JobMeasurements
    pool: PoolSizes = PoolSizes()

    @property
    def used_cpus(self) -> float | None:
        """Processor cores that one worker used on average; None where that was not measured."""
        told = self.measured
        enough = told.worker_s > 0 and told.worker_covered_s >= MEASURED * told.worker_s
        return told.cpu_s / told.worker_covered_s if enough else None

    @property
    def read_mb_s(self) -> float | None:
        """Megabytes that one worker read from disks in a second, on average."""
        told = self.measured
        if told.read_bytes is None or self.used_cpus is None:
            return None
        return told.read_bytes / MB / told.worker_covered_s

    @property
    def gpu_memory(self) -> float | None:
        """What part of its GPU's memory was in use at most; None where it was not measured."""
        told = self.measured
        if told.gpu_memory_gib is None or not told.gpu_memory_total_gib:
            return None
        return told.gpu_memory_gib / told.gpu_memory_total_gib

    @property
    def sm_activity(self) -> float | None:
        """Share of the multiprocessors at work while a kernel ran; None where not measured."""
        told = self.measured
        if not told.active_s or told.sm_covered_s < MEASURED * told.covered_s:
            return None
        return min(told.sm_active_s / told.active_s, 1.0)

    def quiet(self, seconds: float | None) -> float:
        """Return what part of the last attempt so long a time is."""
        return (seconds or 0.0) / self.measured.ran_s if self.measured.ran_s else 0.0
