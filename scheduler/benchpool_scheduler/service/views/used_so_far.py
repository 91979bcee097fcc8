"""Use of running jobs and benches until now: GPU-hours, energy and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract import Lease
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.telemetry import ActivityBucket
from benchpool_scheduler.telemetry.database import Database

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class UsedSoFar:
    """Use of one job or bench.

    Attributes:
        energy_j: Measured energy in joules, or None if none was measured. ``cost``: cost by the
            configured prices, or None without prices.
    """

    gpu_h: float
    energy_j: float | None
    cost: float | None


class UsedSoFarReader:
    """Counts use from the records, and reads the measured energy."""

    def __init__(self, ledger: Ledger, observed: SchedulerState, telemetry: Database) -> None:
        self._ledger = ledger
        self._observed = observed
        self._telemetry = telemetry

    async def read(
        self, jobs: Collection[str], benches: Collection[Lease]
    ) -> Mapping[str, UsedSoFar]:
        """Return their use, by the ID of the job or of the bench's lease."""
        held = {job: list(self._of_job(job)) for job in jobs}
        now = self._observed.settings.clock.now()
        for lease in benches:
            held[lease.id] = [(gpu, max(0.0, now - lease.since.timestamp())) for gpu in lease.gpus]
        energy = await asyncio.to_thread(self._energy, list(jobs), [it.id for it in benches])
        return {name: self._used(held[name], energy[name]) for name in held}

    def _of_job(self, job: str) -> Iterable[tuple[str, float]]:
        """Yield each GPU that a worker of the job had, with its time in seconds."""
        now = self._observed.settings.clock.now()
        for attempt in self._ledger.attempts(job):
            for worker in attempt.workers:
                if worker.started is not None:
                    lasted = max(0.0, (worker.ended or now) - worker.started)
                    yield from ((gpu, lasted) for gpu in worker.gpus)

    def _energy(self, jobs: Sequence[str], benches: Sequence[str]) -> Mapping[str, float | None]:
        of = {name: self._telemetry.totals_of(name) for name in jobs}
        of |= {name: self._telemetry.totals_of_bench(name) for name in benches}
        return {name: _joules(buckets) for name, buckets in of.items()}

    def _used(self, held: Sequence[tuple[str, float]], energy_j: float | None) -> UsedSoFar:
        seen = self._observed.now
        prices, devices = seen.configuration.prices.gpu_hour, seen.inventory.by_uuid
        cost = sum(
            seconds / HOUR_S * prices.get(devices[gpu].model, 0.0)
            for gpu, seconds in held
            if gpu in devices
        )
        gpu_h = sum(seconds for _, seconds in held) / HOUR_S
        return UsedSoFar(gpu_h, energy_j, cost if prices else None)


def _joules(buckets: Sequence[ActivityBucket]) -> float | None:
    found = sum(it.energy_j for it in buckets)
    return found if found > 0 else None
