"""Reader of the recorded history of GPU time: holders, activity, and work discarded by pauses."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Protocol

from benchpool_scheduler import phrases
from benchpool_scheduler.accounting.division import STARTING_S
from benchpool_scheduler.accounting.gpu_intervals import GpuInterval, Loss, MeasuredUse
from benchpool_scheduler.accounting.recorded import RecordedUse
from benchpool_scheduler.service.ledger.ledger import Ledger


class UseStore(Protocol):
    """Store of the history; its calls block."""

    def occupancies(self, begin: float, end: float) -> Sequence[GpuInterval]:
        """Return the intervals that overlap a range of time."""

    def buckets(
        self,
        gpus: Collection[str] | None,
        begin: float,
        end: float,
        at_most: int,
        *,
        by_holder: bool = False,
    ) -> Sequence[MeasuredUse]:
        """Return the measurements of a range of time."""


class UseReader:
    """Reader of the data for reports and charts.

    Args:
        write: Writes pending records.
    """

    def __init__(
        self, ledger: Ledger, store: UseStore, write: Callable[[], Awaitable[None]]
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._write = write

    async def read(self, begin: float, end: float, *, step_s: float) -> RecordedUse:
        """Return the recorded use of a range, in epoch seconds.

        Args:
            step_s: Approximate length of the buckets of measurements, in seconds. It is exact if
                the store keeps this length, or one that divides it.
        """
        await self._write()
        losses = tuple(self.losses(begin))
        return await asyncio.to_thread(self._read, begin, end, step_s, losses)

    def _read(self, begin: float, end: float, step_s: float, losses: Sequence[Loss]) -> RecordedUse:
        since = begin - STARTING_S
        history = self._store.occupancies(since, end)
        # Whole steps match the buckets of the store.
        first, last = math.floor(since / step_s), math.ceil(end / step_s)
        activity = self._store.buckets(
            None, first * step_s, last * step_s, last - first, by_holder=True
        )
        return RecordedUse(begin, end, history, activity, losses)

    def losses(self, begin: float) -> Iterator[Loss]:
        """Yield the work discarded by pauses that ended after this time."""
        for pause in self._ledger.pauses_ended_since(begin):
            attempt = self._ledger.attempt(pause.job, pause.attempt)
            if attempt is None or attempt.started is None or pause.ended is None:
                continue
            since = max(attempt.started, pause.saved_at or 0.0)
            if pause.ended - since >= phrases.NOTHING_S:
                yield Loss(pause.job, pause.attempt, since, pause.ended)
