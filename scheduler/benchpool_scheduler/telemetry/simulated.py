"""Simulated GPUs, whose activity is the processor use of their holder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchpool_scheduler.telemetry.samples import GpuSample


class SimulatedSampler:
    """Sampler of simulated GPUs: activity is the holder's share of cores; see ``GpuSampler``.

    No program computes on such a GPU, so it has no power, temperature or memory values.
    """

    problem: str | None = None

    def __init__(self) -> None:
        self._at: float | None = None

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Return an activity for each GPU; a GPU without a holder is idle."""
        before, self._at = self._at, now
        if before is None or now <= before:
            return ()
        return [
            GpuSample(
                at=now,
                span_s=now - before,
                gpu=gpu,
                activity=min(max(cpu_share.get(gpu, 0.0), 0.0), 1.0),
                simulated=True,
            )
            for gpu in gpus
        ]

    def close(self) -> None:
        """Do nothing."""
