"""Adds up divided history: by whom, by what, and in all."""

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
"""The row of an entry; that of ``CLASS`` is each of its classes. Empty for what nobody held."""


@dataclass(slots=True)
class Total:
    """GPU time of one row.

    Attributes:
        seconds: GPU-seconds by class.
        measurable_s: Held by a bench or a running worker; ``measured_s``: what samples cover of it;
            ``simulated_s``: what of that is the activity of simulated GPUs.
        efficient_s: How long multiprocessors were at work, where that is measured; ``of_s``: how
            long a kernel ran in that time.
        energy_j: Joules, of what is measured; ``cost``: of what is held, by the prices.
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
        """What part of the time that could be measured was; None where none could."""
        return None if self.measurable_s <= 0 else min(1.0, self.measured_s / self.measurable_s)

    @property
    def efficiency(self) -> float | None:
        """Mean activity of the multiprocessors while a kernel ran; None where not measured."""
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
        """Add an entry; ``prices`` are those of an hour of a held GPU, by model."""
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
    """Return a total for each row, those that held most first, then by name.

    For ``UseBy.CLASS`` there is one row, without a name: its seconds are by class already.
    """
    found: dict[str, Total] = defaultdict(Total)
    key = KEYS.get(by)
    for entry in entries:
        found["" if key is None else key(entry)].add(entry, prices or {})
    ranked = sorted(found.items(), key=lambda row: (-row[1].held_s, row[0]))
    return dict(ranked)
