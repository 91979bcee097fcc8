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
        measured = self.measured
        enough = measured.worker_s > 0 and measured.worker_covered_s >= MEASURED * measured.worker_s
        return measured.cpu_s / measured.worker_covered_s if enough else None

    @property
    def read_mb_s(self) -> float | None:
        """Average disk reads per worker, in MB/s."""
        measured = self.measured
        if measured.read_bytes is None or self.used_cpus is None:
            return None
        return measured.read_bytes / MB / measured.worker_covered_s

    @property
    def gpu_memory(self) -> float | None:
        """Peak share of its GPU memory in use; None if not measured."""
        measured = self.measured
        if measured.gpu_memory_gib is None or not measured.gpu_memory_total_gib:
            return None
        return measured.gpu_memory_gib / measured.gpu_memory_total_gib

    @property
    def sm_activity(self) -> float | None:
        """Share of active multiprocessors while a kernel ran; None if not measured."""
        measured = self.measured
        if not measured.active_s or measured.sm_covered_s < MEASURED * measured.covered_s:
            return None
        return min(measured.sm_active_s / measured.active_s, 1.0)

    def quiet(self, seconds: float | None) -> float:
        """Return this time as a share of the last attempt."""
        return (seconds or 0.0) / self.measured.ran_s if self.measured.ran_s else 0.0
