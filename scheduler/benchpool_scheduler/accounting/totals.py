"""Totals of divided history: by owner, by kind, and overall."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from benchpool_scheduler.accounting.classes import HELD
from benchpool_scheduler.accounting.division import Entry
from benchpool_scheduler.contract.use import UseBy, UseClass

HOUR_S = 3600.0


KEYS: Mapping[UseBy, Callable[[Entry], str]] = {
    UseBy.USER: lambda entry: entry.occupancy.occupant.user,
    UseBy.PROJECT: lambda entry: entry.occupancy.occupant.project,
    UseBy.NODE: lambda entry: entry.occupancy.node,
    UseBy.MODEL: lambda entry: entry.occupancy.model,
}
"""Row name of an entry, empty for unheld time; for ``CLASS`` each class is a row."""


@dataclass(slots=True)
class Total:
    """GPU time of one row.

    Attributes:
        seconds: GPU-seconds by class.
        measurable_s: GPU-seconds held by a bench or a running worker. ``measured_s``: the part that
            samples cover. ``simulated_s``: the part of that from simulated GPUs.
        efficient_s: Seconds in which the multiprocessors were active, if measured. ``of_s``: the
            seconds in which a kernel ran in that time.
        energy_j: Joules, of the measured time. ``cost``: of the held time, by the prices.
    """

    seconds: dict[UseClass, float] = field(default_factory=lambda: defaultdict(float))
    measurable_s: float = 0.0
    measured_s: float = 0.0
    simulated_s: float = 0.0
    efficient_s: float = 0.0
    of_s: float = 0.0
    energy_j: float = 0.0
    cost: float = 0.0

    @property
    def gpu_s(self) -> float:
        """GPU-seconds of all classes."""
        return sum(self.seconds.values())

    @property
    def held_s(self) -> float:
        """GPU-seconds that a bench or a job held."""
        return sum(self.seconds.get(one, 0.0) for one in HELD)

    @property
    def coverage(self) -> float | None:
        """Measured share of the measurable time; None if none was measurable."""
        return None if self.measurable_s <= 0 else min(1.0, self.measured_s / self.measurable_s)

    @property
    def efficiency(self) -> float | None:
        """Mean activity of the multiprocessors while a kernel ran; None if not measured."""
        return None if self.of_s <= 0 else min(1.0, self.efficient_s / self.of_s)

    def include(self, other: Total) -> None:
        """Add another total to this one."""
        for one, seconds in other.seconds.items():
            self.seconds[one] += seconds
        self.measurable_s += other.measurable_s
        self.measured_s += other.measured_s
        self.simulated_s += other.simulated_s
        self.efficient_s += other.efficient_s
        self.of_s += other.of_s
        self.energy_j += other.energy_j
        self.cost += other.cost

    def add(self, entry: Entry, prices: Mapping[str, float]) -> None:
        """Add an entry; ``prices`` are those of one GPU-hour, by model."""
        for one, seconds in entry.seconds.items():
            self.seconds[one] += seconds
        self.measurable_s += entry.measurable_s
        self.measured_s += entry.measured_s
        self.simulated_s += entry.simulated_s
        self.efficient_s += entry.efficient_s
        self.of_s += entry.of_s
        self.energy_j += entry.energy_j
        held_s = sum(entry.seconds.get(one, 0.0) for one in HELD)
        self.cost += held_s / HOUR_S * prices.get(entry.occupancy.model, 0.0)


def together(parts: Iterable[Total]) -> Total:
    """Return the total of all parts."""
    found = Total()
    for part in parts:
        found.include(part)
    return found


def totals(
    entries: Iterable[Entry], by: UseBy, prices: Mapping[str, float] | None = None
) -> dict[str, Total]:
    """Return a total for each row, the largest held time first, then by name.

    ``UseBy.CLASS`` gives one row without a name, since its seconds are by class already.
    """
    found: dict[str, Total] = defaultdict(Total)
    key = KEYS.get(by)
    for entry in entries:
        found["" if key is None else key(entry)].add(entry, prices or {})
    ranked = sorted(found.items(), key=lambda row: (-row[1].held_s, row[0]))
    return dict(ranked)
