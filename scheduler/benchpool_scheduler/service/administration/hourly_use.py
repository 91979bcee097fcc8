"""GPU time by hour and project; finished hours are computed once and cached."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from benchpool_scheduler.accounting.gpu_intervals import Loss
from benchpool_scheduler.accounting.recorded import RecordedUse
from benchpool_scheduler.accounting.totals import HOUR_S, Total, totals
from benchpool_scheduler.contract.use import UseBy

LATE_S = 600.0
"""Time after the end of an hour until its totals are final, in seconds. Samples are written once a
minute.
"""

KEPT_DAYS, DAY_S = 8, 86_400.0

PIECE_H = 24
"""Maximum number of hours read at once."""

ByProject = Mapping[str, Total]
"""Totals by project; the empty name holds benches and unheld GPUs."""


class HistoryReader(Protocol):
    """Reader of the recorded history: ``UseReader``."""

    async def read(self, begin: float, end: float, *, step_s: float) -> RecordedUse:
        """Return the recorded use of a range, in epoch seconds."""

    def losses(self, begin: float) -> Iterable[Loss]:
        """Return the work discarded by pauses that ended after this time."""


class HourlyUse:
    """Totals of whole hours and of the current one.

    A pause reports at its end the work that it discarded, possibly of earlier hours. Those hours
    are computed again.

    Attributes:
        begun: Begin of the record as far as it was read, in epoch seconds; infinite if none was
            read.
    """

    def __init__(self, reader: HistoryReader) -> None:
        self._reader = reader
        self._kept: dict[float, ByProject] = {}
        self._losses: frozenset[Loss] = frozenset()
        self.begun = float("inf")

    async def hours(self, number: int, now: float) -> Sequence[tuple[float, ByProject]]:
        """Return the last ``number`` whole hours and the current one, each with its begin.

        Concurrent calls are not allowed.
        """
        last = now // HOUR_S * HOUR_S
        begins = [last - HOUR_S * ago for ago in range(number, -1, -1)]
        self._forget(begins[0], now)
        found: dict[float, ByProject] = dict(self._kept)
        for piece in _pieces([at for at in begins if at not in found]):
            end = min(now, piece[-1] + HOUR_S)
            recorded = await self._reader.read(piece[0], end, step_s=HOUR_S)
            if recorded.history:
                self.begun = min(self.begun, recorded.begun)
            made = await asyncio.to_thread(_divided, recorded, piece, now)
            found |= made
            self._kept |= {at: it for at, it in made.items() if at + HOUR_S + LATE_S <= now}
        return [(at, found[at]) for at in begins if at < now]

    def _forget(self, since: float, now: float) -> None:
        """Drop cached hours in which pauses that have ended since the last call discarded work."""
        losses = frozenset(self._reader.losses(since))
        for loss in losses - self._losses:
            for at in [at for at in self._kept if at < loss.end and at + HOUR_S > loss.begin]:
                del self._kept[at]
        self._losses = losses
        self._kept = {at: it for at, it in self._kept.items() if at >= now - KEPT_DAYS * DAY_S}


def _pieces(begins: Sequence[float]) -> Iterator[Sequence[float]]:
    """Yield runs of consecutive hours, newest run first; a run has at most ``PIECE_H`` hours."""
    run: list[float] = []
    for at in reversed(begins):
        if run and (run[0] - at > HOUR_S or len(run) == PIECE_H):
            yield run
            run = []
        run.insert(0, at)
    if run:
        yield run


def _divided(
    recorded: RecordedUse, begins: Sequence[float], now: float
) -> Mapping[float, ByProject]:
    return {at: totals(recorded.between(at, min(at + HOUR_S, now)), UseBy.PROJECT) for at in begins}
