"""A report as CSV: one line for each row, one column for each class."""

from __future__ import annotations

import csv
import io

from benchpool_scheduler.contract.use import UseClass, UseReport, UseRow

_UNSAFE = ("=", "+", "-", "@", "\t", "\r")


def as_csv(report: UseReport) -> str:
    """Return a report as CSV; GPU-hours have four decimals, what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        (
            *("begin", "end", report.by.value, "rank", "held_gpu_h"),
            *(f"{one.value.replace('-', '_')}_gpu_h" for one in UseClass),
            *("coverage", "simulated", "efficiency", "energy_kwh", "cost", "currency"),
            *("started_jobs", "wait_p50_s", "wait_p95_s"),
            *("preemptions_given", "preemptions_taken"),
        )
    )
    for row in report.rows:
        writer.writerow(_cells(report, row))
    return text.getvalue()


def _cells(report: UseReport, row: UseRow) -> tuple[object, ...]:
    waits = row.waits
    return (
        *(report.begin.isoformat(), report.end.isoformat(), _text(row.name), row.rank),
        round(row.held_gpu_h, 4),
        *(round(row.gpu_h.get(one, 0.0), 4) for one in UseClass),
        *(row.coverage, row.simulated, row.efficiency, row.energy_kwh, row.cost, report.currency),
        *((None,) * 3 if waits is None else (waits.jobs, waits.p50_s, waits.p95_s)),
        *(row.preemptions_given, row.preemptions_taken),
    )


def _text(name: str | None) -> str:
    """Return a name that no table program takes for a formula.

    >>> _text("=1+1"), _text("susan"), _text(None)
    ("'=1+1", 'susan', '')
    """
    if not name:
        return ""
    return f"'{name}" if name.startswith(_UNSAFE) else name
