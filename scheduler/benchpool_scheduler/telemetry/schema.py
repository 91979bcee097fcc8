"""The tables of the telemetry database, and the retention of their rows.

Integers in small units keep rows small. Rows are sorted by time: new rows fill the last page,
expired rows free whole pages, and a range of time is read in one piece without a second index.
Columns ``gpu`` and ``holder`` are numbers of those tables, without foreign keys: rows of hours may
outlive their holder by a step.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import sqlalchemy as sa
from sqlalchemy import Column, MetaData, Table, Text, UniqueConstraint

from benchpool_scheduler.telemetry.dialects import WHOLE
from benchpool_scheduler.telemetry.rollup import Sums
from benchpool_scheduler.telemetry.samples import Holder

LAYOUT = 1
"""Number of this layout, stored beside the tables."""

DAY_S = 86_400
SUMS = tuple(field.name for field in fields(Sums))
HOLDER = tuple(field.name for field in fields(Holder))

metadata = MetaData()

gpus = Table(
    "gpu",
    metadata,
    Column("id", WHOLE, primary_key=True),
    Column("name", Text, nullable=False),
    Column("simulated", WHOLE, nullable=False),
    UniqueConstraint("name", "simulated"),
)

_WHOLE = frozenset({"attempt", "worker"})

holders = Table(
    "holder",
    metadata,
    Column("id", WHOLE, primary_key=True),
    *(Column(name, WHOLE if name in _WHOLE else Text) for name in HOLDER),
    sa.Index("holder_job", "job"),
)
"""Holders of GPUs; the first row is for none. The writer keeps rows unique, as SQL does not for
columns that are null.
"""


def _of_gpu(begin: str) -> tuple[Column[int], ...]:
    """Return the key of a table by time, GPU and holder."""
    return (
        Column(begin, WHOLE, primary_key=True),
        Column("gpu", WHOLE, primary_key=True),
        Column("holder", WHOLE, primary_key=True),
    )


def _sums() -> tuple[Column[int], ...]:
    return tuple(Column(name, WHOLE) for name in SUMS)


raw = Table(
    "raw",
    metadata,
    *_of_gpu("until_ms"),
    Column("span_ms", WHOLE, nullable=False),
    Column("active_ms", WHOLE),
    Column("sm_active_ms", WHOLE),
    Column("memory_mib", WHOLE),
    Column("memory_total_mib", WHOLE),
    Column("power_w", WHOLE),
    Column("energy_j", WHOLE),
    Column("temperature_c", WHOLE),
    Column("throttled", Text),
    Column("xid", WHOLE),
    sqlite_with_rowid=False,
)
minutes = Table("minute", metadata, *_of_gpu("begin"), *_sums(), sqlite_with_rowid=False)
hours = Table("hour", metadata, *_of_gpu("begin"), *_sums(), sqlite_with_rowid=False)

held = Table(
    "held",
    metadata,
    Column("holder", WHOLE, primary_key=True),
    Column("gpu", WHOLE, primary_key=True),
    Column("first_ms", WHOLE, nullable=False),
    Column("last_ms", WHOLE, nullable=False),
    *_sums(),
    sqlite_with_rowid=False,
)
"""Sums of one holder (a worker of an attempt, or a bench) on a GPU."""

worker_raw = Table(
    "worker_raw",
    metadata,
    Column("holder", WHOLE, primary_key=True),
    Column("until_ms", WHOLE, primary_key=True),
    Column("span_ms", WHOLE, nullable=False),
    Column("cpu_ms", WHOLE, nullable=False),
    Column("milli_cpus", WHOLE, nullable=False),
    Column("memory_mib", WHOLE),
    Column("memory_peak_mib", WHOLE),
    Column("read_bytes", WHOLE),
    Column("written_bytes", WHOLE),
    sqlite_with_rowid=False,
)
worker_total = Table(
    "worker_total",
    metadata,
    Column("holder", WHOLE, primary_key=True),
    Column("first_ms", WHOLE, nullable=False),
    Column("last_ms", WHOLE, nullable=False),
    Column("covered_ms", WHOLE, nullable=False),
    Column("cpu_ms", WHOLE, nullable=False),
    Column("milli_cpus", WHOLE, nullable=False),
    Column("memory_peak_mib", WHOLE),
    Column("read_bytes", WHOLE),
    Column("written_bytes", WHOLE),
    sqlite_with_rowid=False,
)


@dataclass(frozen=True, slots=True)
class RollupLevel:
    """Table of sums: the length of its steps, and its retention in days."""

    step_s: int
    days: int
    table: Table


RAW_STEP_S, RAW_DAYS = 10, 2
LEVELS = (RollupLevel(60, 30, minutes), RollupLevel(3600, 400, hours))
"""The tables of sums, the finest first."""

HELD_DAYS = LEVELS[-1].days
"""Retention of a holder's sums, in days."""
