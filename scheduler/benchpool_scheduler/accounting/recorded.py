"""A recorded history that is read once and divided over any parts of its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.accounting.division import STARTING_S, Entry, divide
from benchpool_scheduler.accounting.gpu_intervals import GpuInterval, Loss, MeasuredUse


@dataclass(frozen=True, slots=True)
class RecordedUse:
    """Holders of the GPUs, their measurements, and the work that pauses discarded.

    Attributes:
        begin: Begin of the requested range, epoch seconds; ``history`` and ``activity`` reach
            ``STARTING_S`` before it. ``end``: its end.
    """

    begin: float
    end: float
    history: Sequence[GpuInterval]
    activity: Sequence[MeasuredUse]
    losses: Sequence[Loss]

    @property
    def begun(self) -> float:
        """Begin of the record in the range; the range's end without a record."""
        return min((it.begin for it in self.history), default=self.end)

    def entries(self) -> list[Entry]:
        """Return the divided history of the whole range."""
        return divide(self.history, self.activity, self.losses, self.begin, self.end)

    def between(self, begin: float, end: float) -> list[Entry]:
        """Return the divided history of a part of the range."""
        since = begin - STARTING_S
        history = [it for it in self.history if it.end > since and it.begin < end]
        activity = [it for it in self.activity if it.begin + it.span_s > since and it.begin < end]
        return divide(history, activity, self.losses, begin, end)
