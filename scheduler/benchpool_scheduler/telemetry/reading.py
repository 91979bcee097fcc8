"""Queries of measured use, in a given number of buckets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from benchpool_scheduler.telemetry import schema
from benchpool_scheduler.telemetry.dialects import WHOLE
from benchpool_scheduler.telemetry.rollup import (
    ADDED,
    MIB,
    MOST,
    MS,
    PERMILLE,
    Bucket,
    Sums,
    rolled,
)
from benchpool_scheduler.telemetry.samples import NO_HOLDER, GpuSample, HeldSample, Holder

LONGEST_S = 3600.0
"""Maximum length of a sample in seconds; it limits the number of rows to scan."""


@dataclass(frozen=True, slots=True)
class ActivityBucket:
    """Activity of one GPU over a span of time; a span without samples has no bucket.

    Attributes:
        begin: Seconds since the epoch. ``span_s``: length in seconds.
        covered_s: Seconds in which activity was measured; ``active_s``: seconds of these in which
            a kernel ran. The rest of the span is unknown, not idle.
        memory_max_gib, temperature_max_c: Maximum, or None when not measured.
        energy_j: Measured energy in joules.
        simulated: Whether all of it is of a simulated GPU.
        activity_min, activity_max: Of the least and the most active sample, shares 0 to 1.
        sm_covered_s: Seconds in which the multiprocessors were measured; ``sm_active_s``: the same,
            weighted by their share in use.
        throttled_s: Seconds with a reduced clock. ``xids``: number of driver errors.
        holder: Its holder in buckets by holder, else ``NO_HOLDER``.
    """

    gpu: str
    begin: int
    span_s: int
    covered_s: float
    active_s: float
    memory_max_gib: float | None
    energy_j: float
    simulated: bool
    activity_min: float | None = None
    activity_max: float | None = None
    sm_covered_s: float = 0.0
    sm_active_s: float = 0.0
    temperature_max_c: float | None = None
    throttled_s: float = 0.0
    xids: int = 0
    holder: Holder = NO_HOLDER


@dataclass(frozen=True, slots=True)
class WorkerTotal:
    """Use by one worker or bench; None where it was not measured.

    Attributes:
        begin, end: Of the samples, seconds since the epoch; ``covered_s``: seconds measured.
        cpu_s: Processor seconds; ``cpus``: assigned cores, 0 for no limit.
    """

    holder: Holder
    begin: float
    end: float
    covered_s: float
    cpu_s: float
    cpus: float
    memory_peak_gib: float | None
    read_bytes: int | None
    written_bytes: int | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """Table to read (None for raw rows), and the length of a bucket in seconds."""

    level: schema.RollupLevel | None
    span_s: int


def resolution(begin: float, end: float, at_most: int, now: float) -> Resolution:
    """Return how to read a range: the coarsest table whose steps are not longer than a bucket.

    A range that begins before the retention of a table needs a coarser one.

    >>> hour, day = 3600.0, 86_400.0
    >>> now = 1000 * day
    >>> [resolution(now - ago, now, 100, now).span_s for ago in (hour, day, 7 * day, 400 * day)]
    [40, 900, 7200, 345600]
    >>> resolution(now - 3 * day, now - 3 * day + 600, 100, now).span_s
    60
    """
    wanted = max(end - begin, 0.0) / max(at_most, 1)
    steps: list[tuple[int, int, schema.RollupLevel | None]] = [
        (schema.RAW_STEP_S, schema.RAW_DAYS, None),
        *((level.step_s, level.days, level) for level in schema.LEVELS),
    ]
    kept = [it for it in steps if begin >= now - it[1] * schema.DAY_S] or steps[-1:]
    fine = [it for it in kept if it[0] <= wanted] or kept[:1]
    step_s, _, level = fine[-1]
    return Resolution(level, step_s * max(1, -int(-wanted // step_s)))


def buckets(
    connection: Connection,
    gpus: Collection[str] | None,
    begin: float,
    end: float,
    at_most: int,
    now: float,
    *,
    by_holder: bool = False,
    holders: Collection[int] | None = None,
) -> list[ActivityBucket]:
    """Return the buckets of a range, by GPU and time; see ``Database.buckets``."""
    how = resolution(begin, end, at_most, now)
    span_s = how.span_s
    first = int(begin // span_s) * span_s
    numbers = _numbers(connection, gpus)
    if how.level is None:
        found = _from_raw(connection, numbers, first, end, span_s, holders)
        if not by_holder:
            found = _without_holder(found)
    else:
        found = _from_sums(connection, numbers, first, end, how, by_holder, holders)
    rows = [_bucket(key, sums, span_s) for key, sums in found]
    return sorted(rows, key=lambda it: (it.gpu, it.simulated, it.begin))


def held(connection: Connection, where: sa.ColumnElement[bool]) -> list[tuple[ActivityBucket, int]]:
    """Return one bucket for each holder and GPU, with the holder's number."""
    table, gpu, holder = schema.held, schema.gpus, schema.holders
    rows = connection.execute(
        sa.select(table, gpu.c.name, gpu.c.simulated, *_holder_columns())
        .join(gpu, gpu.c.id == table.c.gpu)
        .join(holder, holder.c.id == table.c.holder)
        .where(where)
        .order_by(table.c.first_ms, table.c.gpu)
    ).mappings()
    return [
        (
            _bucket(
                Bucket(row["name"], bool(row["simulated"]), _holder(row), row["first_ms"] // MS),
                Sums(**{name: row[name] for name in schema.SUMS}),
                -(-row["last_ms"] // MS) - row["first_ms"] // MS,
            ),
            row["holder"],
        )
        for row in rows
    ]


def worker_totals(connection: Connection, where: sa.ColumnElement[bool]) -> list[WorkerTotal]:
    """Return the totals of workers and benches."""
    table, holder = schema.worker_total, schema.holders
    rows = connection.execute(
        sa.select(table, *_holder_columns())
        .join(holder, holder.c.id == table.c.holder)
        .where(where)
        .order_by(table.c.first_ms)
    ).mappings()
    return [
        WorkerTotal(
            holder=_holder(row),
            begin=row["first_ms"] / MS,
            end=row["last_ms"] / MS,
            covered_s=row["covered_ms"] / MS,
            cpu_s=row["cpu_ms"] / MS,
            cpus=row["milli_cpus"] / 1000,
            memory_peak_gib=_part(row["memory_peak_mib"], MIB),
            read_bytes=row["read_bytes"],
            written_bytes=row["written_bytes"],
        )
        for row in rows
    ]


# ---------------------------------------------------------------------------- internals

_Found = Iterator[tuple[Bucket, Sums]]


def _numbers(connection: Connection, gpus: Collection[str] | None) -> dict[int, tuple[str, bool]]:
    columns = schema.gpus.c
    query = sa.select(columns.id, columns.name, columns.simulated)
    rows = connection.execute(query).all()
    return {
        number: (name, bool(simulated))
        for number, name, simulated in rows
        if gpus is None or name in gpus
    }


def _from_sums(
    connection: Connection,
    numbers: dict[int, tuple[str, bool]],
    first: int,
    end: float,
    how: Resolution,
    by_holder: bool,
    holders: Collection[int] | None,
) -> _Found:
    assert how.level is not None  # noqa: S101 - checked by the caller
    table = how.level.table.c
    # SQL's sum of nulls only is null; zero is meant. PostgreSQL's sums have another type than their
    # summands.
    sums = [
        sa.cast(sa.func.coalesce(sa.func.sum(table[name]), 0), WHOLE).label(name) for name in ADDED
    ]
    sums += [sa.func.max(table[name]).label(name) for name in MOST]
    sums += [sa.func.min(table.activity_min).label("activity_min")]
    at = (table.begin - table.begin % how.span_s).label("at")
    keys = [table.gpu, at, *([table.holder] if by_holder else [])]
    query = sa.select(*keys, *sums).where(
        table.gpu.in_(list(numbers)), table.begin >= first, table.begin < end
    )
    if holders is not None:
        query = query.where(table.holder.in_(list(holders)))
    rows = connection.execute(query.group_by(*keys)).mappings().all()
    who = _holders(connection, {row["holder"] for row in rows}) if by_holder else {}
    for row in rows:
        name, simulated = numbers[row["gpu"]]
        holder = who.get(row["holder"], NO_HOLDER) if by_holder else NO_HOLDER
        yield (
            Bucket(name, simulated, holder, row["at"]),
            Sums(**{name: row[name] for name in schema.SUMS}),
        )


def _from_raw(
    connection: Connection,
    numbers: dict[int, tuple[str, bool]],
    first: int,
    end: float,
    span_s: int,
    holders: Collection[int] | None,
) -> _Found:
    samples = raw(connection, numbers, first, end, holders)
    last = -int(-end // span_s) * span_s
    for key, sums in rolled(samples, span_s).items():
        if first <= key.begin < last:
            yield key, sums


def raw(
    connection: Connection,
    numbers: dict[int, tuple[str, bool]],
    first: float,
    end: float,
    holders: Collection[int] | None = None,
) -> list[HeldSample]:
    """Return the samples that overlap a range."""
    table = schema.raw.c
    query = sa.select(schema.raw).where(
        table.gpu.in_(list(numbers)),
        table.until_ms > round(first * MS),
        table.until_ms < round((end + LONGEST_S) * MS),
        table.until_ms - table.span_ms < round(end * MS),
    )
    if holders is not None:
        query = query.where(table.holder.in_(list(holders)))
    rows = connection.execute(query).mappings().all()
    who = _holders(connection, {row["holder"] for row in rows})
    return [
        HeldSample(_sample(row, *numbers[row["gpu"]]), who.get(row["holder"], NO_HOLDER))
        for row in rows
    ]


def _sample(row: sa.RowMapping, gpu: str, simulated: bool) -> GpuSample:
    span_s = row["span_ms"] / MS
    length = row["span_ms"] or 1
    return GpuSample(
        at=row["until_ms"] / MS,
        span_s=span_s,
        gpu=gpu,
        activity=_part(row["active_ms"], length),
        sm_activity=_part(row["sm_active_ms"], length),
        memory_used_gib=_part(row["memory_mib"], MIB),
        memory_total_gib=_part(row["memory_total_mib"], MIB),
        power_w=row["power_w"],
        energy_j=row["energy_j"],
        temperature_c=row["temperature_c"],
        throttled=tuple((row["throttled"] or "").split(",")) if row["throttled"] else (),
        xid=row["xid"],
        simulated=simulated,
    )


def _without_holder(found: _Found) -> _Found:
    merged: dict[Bucket, Sums] = {}
    for key, sums in found:
        bare = key._replace(holder=NO_HOLDER)
        merged[bare] = merged[bare] + sums if bare in merged else sums
    return iter(merged.items())


def _holders(connection: Connection, numbers: Collection[int]) -> dict[int, Holder]:
    columns = schema.holders.c
    query = sa.select(columns.id, *_holder_columns()).where(columns.id.in_(list(numbers)))
    return {row["id"]: _holder(row) for row in connection.execute(query).mappings()}


def _holder_columns() -> Sequence[sa.ColumnElement[object]]:
    return [schema.holders.c[name].label(f"of_{name}") for name in schema.HOLDER]


def _holder(row: sa.RowMapping) -> Holder:
    return Holder(**{name: row[f"of_{name}"] for name in schema.HOLDER})


def _part(value: int | None, unit: int) -> float | None:
    return None if value is None else value / unit


def _bucket(key: Bucket, sums: Sums, span_s: int) -> ActivityBucket:
    return ActivityBucket(
        gpu=key.gpu,
        begin=key.begin,
        span_s=span_s,
        covered_s=sums.covered_ms / MS,
        active_s=sums.active_ms / MS,
        memory_max_gib=_part(sums.memory_max_mib, MIB),
        energy_j=float(sums.energy_j),
        simulated=key.simulated,
        activity_min=_part(sums.activity_min, PERMILLE),
        activity_max=_part(sums.activity_max, PERMILLE),
        sm_covered_s=sums.sm_covered_ms / MS,
        sm_active_s=sums.sm_active_ms / MS,
        temperature_max_c=sums.temperature_max_c,
        throttled_s=sums.throttled_ms / MS,
        xids=sums.xids,
        holder=key.holder,
    )
