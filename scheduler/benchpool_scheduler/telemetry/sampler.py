"""The port to what measures GPUs, and the sibling that measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchpool_scheduler.contract.node_report import NodeReport
from benchpool_scheduler.telemetry.samples import GpuSample, Holder, WorkerSample
from benchpool_scheduler.telemetry.storage import Storage
from benchpool_scheduler.worker.worker_id import WorkerId


class GpuSampler(Protocol):
    """What measures GPUs. It never raises: what it cannot measure is None, or no sample."""

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Measure each GPU once, from the last call until now. Blocks; one call at a time.

        Args:
            gpus: Those that the scheduler knows.
            now: Seconds since the epoch by the service's clock.
            cpu_share: By GPU: which share of its given cores the holder used, 0 to 1, where that
                is known. A simulated GPU is as active as that; others leave it alone.
        """

    @property
    def problem(self) -> str | None:
        """Why nothing can be measured, as a sentence; None while something can."""

    def close(self) -> None:
        """Let go of the driver."""


class NoSampler:
    """Measures nothing."""

    problem: str | None = None

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Return nothing."""
        return ()

    def close(self) -> None:
        """There is nothing to let go of."""


@dataclass(frozen=True, slots=True)
class HeldProcesses:
    """Processes to measure: who they are, their GPUs, and how many cores they were given.

    Attributes:
        of: The worker, or the id of the bench's lease.
    """

    of: WorkerId | str
    holder: Holder
    gpus: tuple[str, ...]
    cpus: float


class WorkerSampler(Protocol):
    """What measures the processes of workers and benches. It never raises."""

    def sample_workers(self, held: Sequence[HeldProcesses], now: float) -> Sequence[WorkerSample]:
        """Return what each used since the last call, as far as it is known. Blocks.

        Args:
            now: Seconds since the epoch by the service's clock.
        """


class NoWorkers:
    """Measures no processes: they are on other machines."""

    def sample_workers(self, held: Sequence[HeldProcesses], now: float) -> Sequence[WorkerSample]:
        """Return nothing."""
        return ()


class ReportTaker(Protocol):
    """What agents of nodes report to."""

    every_s: float

    def take(self, node: str, report: NodeReport, now: float) -> None:
        """Take a report; ``now`` in seconds since the epoch by the service's clock."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What measures GPUs and processes, and every how many seconds; 0 measures nothing at all.

    Attributes:
        workers: None for the processes of this machine.
        reports: Takes what agents of nodes report; None where none are expected.
        storage: Where it is kept; None for a file beside the state.
    """

    sampler: GpuSampler
    every_s: float
    workers: WorkerSampler | None = None
    reports: ReportTaker | None = None
    storage: Storage | None = None


NO_SAMPLING = Sampling(NoSampler(), 0.0)
