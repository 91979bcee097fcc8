"""Intervals of GPU holders: rows of the telemetry database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Index, Table, Text

from benchpool_scheduler.accounting.classes import GpuUseKind
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval
from benchpool_scheduler.telemetry.dialects import WHOLE, dialect
from benchpool_scheduler.telemetry.rollup import MS
from benchpool_scheduler.telemetry.schema import DAY_S, HELD_DAYS, metadata

table = Table(
    "occupancy",
    metadata,
    Column("gpu", Text, primary_key=True),
    Column("begin_ms", WHOLE, primary_key=True),
    Column("end_ms", WHOLE, nullable=False),
    Column("node", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("occupation", Text, nullable=False),
    Column("user", Text, nullable=False),
    Column("project", Text, nullable=False),
    Column("job", Text, nullable=False),
    Column("attempt", WHOLE, nullable=False),
    Column("bench", Text, nullable=False),
    Index("occupancy_end", "end_ms"),
    sqlite_with_rowid=False,
)


def keep(connection: Connection, intervals: Iterable[GpuInterval]) -> None:
    """Write intervals; an existing one is extended."""
    rows = {(row["gpu"], row["begin_ms"]): row for row in map(_row, intervals)}
    if not rows:
        return
    statement = dialect(connection).insert(table)
    update = {"end_ms": statement.excluded.end_ms}
    connection.execute(
        statement.on_conflict_do_update(index_elements=("gpu", "begin_ms"), set_=update),
        list(rows.values()),
    )


def prune(connection: Connection, now: float) -> None:
    """Remove intervals that are older than the retention of measured use."""
    old = round((now - HELD_DAYS * DAY_S) * MS)
    connection.execute(table.delete().where(table.c.end_ms < old))


def between(connection: Connection, begin: float, end: float) -> Sequence[GpuInterval]:
    """Return the intervals that overlap a range, epoch seconds."""
    reaches = (table.c.end_ms > round(begin * MS), table.c.begin_ms < round(end * MS))
    rows = connection.execute(sa.select(table).where(*reaches)).mappings()
    return [_occupancy(row) for row in rows]


def newest(connection: Connection) -> Sequence[GpuInterval]:
    """Return the last interval of every GPU."""
    last = sa.select(table.c.gpu, sa.func.max(table.c.begin_ms).label("at")).group_by(table.c.gpu)
    it = last.subquery()
    rows = connection.execute(
        sa.select(table).join(it, sa.and_(table.c.gpu == it.c.gpu, table.c.begin_ms == it.c.at))
    ).mappings()
    return [_occupancy(row) for row in rows]


def _row(one: GpuInterval) -> dict[str, Any]:
    who = one.occupant
    return {
        "gpu": one.gpu,
        "begin_ms": round(one.begin * MS),
        "end_ms": round(one.end * MS),
        "node": one.node,
        "model": one.model,
        "occupation": who.occupation.value,
        "user": who.user,
        "project": who.project,
        "job": who.job,
        "attempt": who.attempt,
        "bench": who.bench,
    }


def _occupancy(row: sa.RowMapping) -> GpuInterval:
    occupant = GpuHolder(
        GpuUseKind(row["occupation"]),
        user=row["user"],
        project=row["project"],
        job=row["job"],
        attempt=row["attempt"],
        bench=row["bench"],
    )
    return GpuInterval(
        row["gpu"],
        row["node"],
        row["model"],
        row["begin_ms"] / MS,
        row["end_ms"] / MS,
        occupant,
    )
