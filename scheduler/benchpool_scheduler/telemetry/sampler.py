"""The port to what measures GPUs, and the sibling that measures nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchpool_scheduler.telemetry.samples import GpuSample


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
class Sampling:
    """What measures GPUs, and every how many seconds; 0 measures nothing at all."""

    sampler: GpuSampler
    every_s: float


NO_SAMPLING = Sampling(NoSampler(), 0.0)
