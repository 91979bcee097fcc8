"""A report as CSV: one line for each row, one column for each class."""

from __future__ import annotations

from benchpool_scheduler import phrases
from benchpool_scheduler.contract.use import UseClass, UseReport, UseRow


def as_csv(report: UseReport) -> str:
    """Return a report as CSV; GPU-hours have four decimals, unknown values are empty."""
    columns = (
        *("begin", "end", report.by.value, "rank", "held_gpu_h"),
        *(f"{one.value.replace('-', '_')}_gpu_h" for one in UseClass),
        *("coverage", "simulated", "efficiency", "energy_kwh", "cost", "currency"),
        *("started_jobs", "wait_p50_s", "wait_p95_s"),
        *("preemptions_given", "preemptions_taken"),
    )
    return phrases.as_csv(columns, (_cells(report, row) for row in report.rows))


def _cells(report: UseReport, row: UseRow) -> tuple[object, ...]:
    waits = row.waits
    return (
        *(report.begin.isoformat(), report.end.isoformat(), row.name, row.rank),
        round(row.held_gpu_h, 4),
        *(round(row.gpu_h.get(one, 0.0), 4) for one in UseClass),
        *(row.coverage, row.simulated, row.efficiency, row.energy_kwh, row.cost, report.currency),
        *((None,) * 3 if waits is None else (waits.jobs, waits.p50_s, waits.p95_s)),
        *(row.preemptions_given, row.preemptions_taken),
    )
