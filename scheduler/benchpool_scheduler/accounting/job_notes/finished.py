"""Input of the rules: an ended job, its measurements, and the sizes of the pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchpool_scheduler.contract.job_usage import JobMeasurements
from benchpool_scheduler.contract.spec import JobSpec

MEASURED = 0.9
"""Minimum share of the time that a measurement must cover to be used by a rule."""

MB = 1e6


@dataclass(frozen=True, slots=True)
class PoolSizes:
    """Largest possible requests in this pool; advice never exceeds them.

    Attributes:
        cpus: Processor cores of the largest machine for training, None if no bound is known;
            ``memory_gib``: memory likewise. ``gpus``: its GPUs.
        models: Memory of the GPUs for training in GiB, by model, if known.
    """

    cpus: float | None = None
    memory_gib: float | None = None
    gpus: int = 0
    models: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """An ended job.

    Attributes:
        short_id: Its ID in commands. ``failed``: it ended with an error.
        spec: Its request.
    """

    short_id: str
    failed: bool
    spec: JobSpec
    measured: JobMeasurements
    pool: PoolSizes = PoolSizes()

    @property
    def used_cpus(self) -> float | None:
        """Average processor cores used per worker; None if not measured."""
        told = self.measured
        enough = told.worker_s > 0 and told.worker_covered_s >= MEASURED * told.worker_s
        return told.cpu_s / told.worker_covered_s if enough else None

    @property
    def read_mb_s(self) -> float | None:
        """Average disk reads per worker, in MB/s."""
        told = self.measured
        if told.read_bytes is None or self.used_cpus is None:
            return None
        return told.read_bytes / MB / told.worker_covered_s

    @property
    def gpu_memory(self) -> float | None:
        """Peak share of its GPU memory in use; None if not measured."""
        told = self.measured
        if told.gpu_memory_gib is None or not told.gpu_memory_total_gib:
            return None
        return told.gpu_memory_gib / told.gpu_memory_total_gib

    @property
    def sm_activity(self) -> float | None:
        """Share of active multiprocessors while a kernel ran; None if not measured."""
        told = self.measured
        if not told.active_s or told.sm_covered_s < MEASURED * told.covered_s:
            return None
        return min(told.sm_active_s / told.active_s, 1.0)

    def quiet(self, seconds: float | None) -> float:
        """Return this time as a share of the last attempt."""
        return (seconds or 0.0) / self.measured.ran_s if self.measured.ran_s else 0.0
