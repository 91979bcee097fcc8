"""Report from divided history: rows, their order, and notes on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.accounting.classes import HELD, TITLES
from benchpool_scheduler.accounting.division import Entry
from benchpool_scheduler.accounting.percentiles import percentile
from benchpool_scheduler.accounting.totals import HOUR_S, Total, totals
from benchpool_scheduler.contract.use import UseBy, UseClass, UseRow, UseWaits
from benchpool_scheduler.phrases import gpu_hours, percent, share

JOULES_PER_KWH = 3.6e6
WELL_COVERED = 0.995

WhoseJob = tuple[str, str]
"""User and project of a job."""


@dataclass(frozen=True, slots=True)
class JobFigures:
    """Waits and preemptions of jobs in the range, by user and project.

    Attributes:
        waits: Waits of jobs with their first start in the range, in seconds.
        given: Preemptions of their jobs; ``taken``: preemptions for their jobs.
    """

    waits: Mapping[WhoseJob, Sequence[float]] = field(default_factory=dict)
    given: Counter[WhoseJob] = field(default_factory=Counter)
    taken: Counter[WhoseJob] = field(default_factory=Counter)

    def of(self, by: UseBy, name: str | None) -> JobFigures:
        """Return the figures of one row, or of all for no name."""
        place = {UseBy.USER: 0, UseBy.PROJECT: 1}.get(by)
        if name is None:
            return self
        if place is None:
            return JobFigures()
        return JobFigures(
            {whose: it for whose, it in self.waits.items() if whose[place] == name},
            Counter({whose: it for whose, it in self.given.items() if whose[place] == name}),
            Counter({whose: it for whose, it in self.taken.items() if whose[place] == name}),
        )


def rows_of(
    entries: Sequence[Entry],
    by: UseBy,
    figures: JobFigures,
    prices: Mapping[str, float],
) -> tuple[list[UseRow], UseRow]:
    """Return a row for each user, project, class, node or model, and the total row."""
    whole = totals(entries, UseBy.CLASS, prices).get("", Total())
    total = _row(None, whole, figures, prices)
    if by is UseBy.CLASS:
        return list(_classes(whole)), total
    found = totals(entries, by, prices)
    return [
        _row(name, one, figures.of(by, name), prices, rank if name and one.held_s > 0 else None)
        for rank, (name, one) in _ranked(found)
    ], total


def row_of(total: Total, name: str | None = None, figures: JobFigures | None = None) -> UseRow:
    """Return the row of a total, without rank and cost."""
    return _row(name, total, figures or JobFigures(), {})


def _ranked(found: Mapping[str, Total]) -> Iterator[tuple[int, tuple[str, Total]]]:
    """Number the named rows; unheld time comes last and has no rank."""
    rank = 0
    for name, one in sorted(found.items(), key=lambda row: not row[0]):
        rank += bool(name)
        yield rank, (name, one)


def _classes(whole: Total) -> Iterator[UseRow]:
    for one in UseClass:
        hours = whole.seconds.get(one, 0.0) / HOUR_S
        held = hours if one in HELD else 0.0
        yield UseRow(name=one.value, gpu_h={one: hours}, held_gpu_h=held)


def _row(
    name: str | None,
    of: Total,
    figures: JobFigures,
    prices: Mapping[str, float],
    rank: int | None = None,
) -> UseRow:
    waits = sorted(wait for each in figures.waits.values() for wait in each)
    return UseRow(
        name=name or None,
        rank=rank,
        gpu_h={one: of.seconds.get(one, 0.0) / HOUR_S for one in UseClass},
        held_gpu_h=of.held_s / HOUR_S,
        coverage=of.coverage,
        simulated=of.simulated_s > 0,
        efficiency=of.efficiency,
        energy_kwh=of.energy_j / JOULES_PER_KWH if of.energy_j > 0 else None,
        cost=of.cost if prices else None,
        waits=_waits(waits) if waits else None,
        preemptions_given=figures.given.total(),
        preemptions_taken=figures.taken.total(),
    )


def _waits(waits: Sequence[float]) -> UseWaits:
    return UseWaits(len(waits), percentile(waits, 50), percentile(waits, 95))


def sentence(total: UseRow, span: str) -> str:
    """Return the report in one sentence."""
    gpu_h = sum(total.gpu_h.values())
    if gpu_h <= 0:
        return f"{span}: nothing is recorded."
    parts = [
        f"{share(hours / gpu_h)} {TITLES[one]}"
        for one in UseClass
        if (hours := total.gpu_h.get(one, 0.0)) / gpu_h >= 0.005
    ]
    return f"{span}: {gpu_hours(gpu_h)} GPU-hours, of them {', '.join(parts)}."


def notes(
    total: UseRow,
    *,
    begun: str | None,
    lost_since: str | None = None,
    waits_since: str | None = None,
) -> Iterable[str]:
    """Yield notes that readers of a report need.

    Args:
        begun: Begin of the record, if in the range. ``lost_since``: begin of the records of lost
            work. ``waits_since``: begin of the records of waits and preemptions.
    """
    if begun is not None:
        yield f"The record begins on {begun}; earlier times are missing."
    if total.simulated:
        yield (
            "GPUs are simulated: their use follows the CPU use of their workers and was not "
            "measured."
        )
    if total.coverage is not None and total.coverage < WELL_COVERED:
        yield (
            f"Samples cover {percent(total.coverage)} of the time that benches and running workers "
            f"had GPUs; their use in the rest is not known."
        )
    if lost_since is not None:
        yield (
            f"The cost of pauses is that of jobs that ended after {lost_since}: records of older "
            "jobs were removed."
        )
    if waits_since is not None:
        yield (
            f"Waits and preemptions are those of jobs that ended after {waits_since}: records of "
            "older jobs were removed."
        )
