"""GPUs that exist in the books alone: as active as the processors are of what holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchpool_scheduler.telemetry.samples import GpuSample


class SimulatedSampler:
    """Tells of each simulated GPU the share of its cores that its holder used; see ``GpuSampler``.

    Nobody computes on such a GPU, so power, temperature and memory are not told.
    """

    problem: str | None = None

    def __init__(self) -> None:
        self._at: float | None = None

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Return an activity for each GPU; a GPU that nobody holds is idle."""
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
        """There is nothing to let go of."""
