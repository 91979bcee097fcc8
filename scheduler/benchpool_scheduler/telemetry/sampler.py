"""The ports of GPU and worker samplers, and implementations without measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchpool_scheduler.contract.node_report import NodeReport
from benchpool_scheduler.telemetry.samples import GpuSample, Holder, WorkerSample
from benchpool_scheduler.telemetry.storage import Storage
from benchpool_scheduler.worker.worker_id import WorkerId


class GpuSampler(Protocol):
    """Sampler of GPUs. It never raises: a value that cannot be measured is None, or no sample."""

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Measure each GPU once, from the last call until now. Blocks; one call at a time.

        Args:
            gpus: The GPUs that the scheduler knows.
            now: Seconds since the epoch by the service's clock.
            cpu_share: By GPU: share of its holder's cores in use, 0 to 1, if known. It is the
                activity of a simulated GPU; other samplers ignore it.
        """

    @property
    def problem(self) -> str | None:
        """Return why no GPU can be measured, as a sentence, or None."""

    def close(self) -> None:
        """Release the driver."""


class NoSampler:
    """Sampler that measures nothing."""

    problem: str | None = None

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Return nothing."""
        return ()

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class HeldProcesses:
    """Processes to measure: their identity, GPUs and assigned cores.

    Attributes:
        of: The worker, or the ID of the bench's lease.
    """

    of: WorkerId | str
    holder: Holder
    gpus: tuple[str, ...]
    cpus: float


class WorkerSampler(Protocol):
    """Sampler of the processes of workers and benches. It never raises."""

    def sample_workers(self, held: Sequence[HeldProcesses], now: float) -> Sequence[WorkerSample]:
        """Return each one's use since the last call, where known. Blocks.

        Args:
            now: Seconds since the epoch by the service's clock.
        """


class NoWorkers:
    """Sampler for processes on other machines, which it does not measure."""

    def sample_workers(self, held: Sequence[HeldProcesses], now: float) -> Sequence[WorkerSample]:
        """Return nothing."""
        return ()


class ReportTaker(Protocol):
    """Receiver of reports from the agents of nodes."""

    every_s: float

    def take(self, node: str, report: NodeReport, now: float) -> None:
        """Accept a report; ``now`` in seconds since the epoch by the service's clock."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Samplers of GPUs and processes, and their interval in seconds; 0 disables sampling.

    Attributes:
        workers: None for the processes of this machine.
        reports: Receiver of agents' reports; None when none are expected.
        storage: Storage of the samples; None for a file beside the state.
    """

    sampler: GpuSampler
    every_s: float
    workers: WorkerSampler | None = None
    reports: ReportTaker | None = None
    storage: Storage | None = None


NO_SAMPLING = Sampling(NoSampler(), 0.0)
