"""Writing of samples: raw rows, and sums that are updated with them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from benchpool_scheduler.telemetry import schema
from benchpool_scheduler.telemetry.dialects import dialect
from benchpool_scheduler.telemetry.rollup import ADDED, MIB, MOST, MS, Sums, coarser, rolled
from benchpool_scheduler.telemetry.samples import GpuSample, HeldSample, HeldWorkerSample, Holder


class Keys:
    """Cached numbers of GPUs and holders, created on first use."""

    def __init__(self) -> None:
        self._gpus: dict[tuple[str, bool], int] = {}
        self._holders: dict[Holder, int] = {}

    def gpu(self, connection: Connection, name: str, simulated: bool) -> int:
        """Return the number of a GPU, created if necessary."""
        return self._number(
            connection,
            self._gpus,
            (name, simulated),
            schema.gpus,
            {"name": name, "simulated": int(simulated)},
        )

    def holder(self, connection: Connection, holder: Holder) -> int:
        """Return the number of a holder, created if necessary."""
        values = dict(zip(schema.HOLDER, astuple(holder), strict=True))
        return self._number(connection, self._holders, holder, schema.holders, values)

    def _number(
        self,
        connection: Connection,
        known: dict[Any, int],
        key: Any,
        table: Table,
        values: Mapping[str, Any],
    ) -> int:
        if key not in known:
            same = (table.c[name].is_not_distinct_from(value) for name, value in values.items())
            found = connection.scalar(sa.select(table.c.id).where(*same))
            if found is None:
                made = connection.execute(table.insert().values(values)).inserted_primary_key
                found = made[0] if made is not None else 0
            known[key] = int(found)
        return known[key]


def until(connection: Connection, now: float) -> dict[tuple[str, bool], float]:
    """Return the last written time of each GPU; remove rows in the future first.

    After a clock was set back, no second is counted twice and writing continues.
    """
    ahead = schema.raw.delete().where(schema.raw.c.until_ms > round(now * MS))
    if connection.execute(ahead).rowcount:
        _forget_sums_after(connection, int(now))
    last = sa.func.max(schema.raw.c.until_ms)
    rows = connection.execute(
        sa.select(schema.gpus.c.name, schema.gpus.c.simulated, last)
        .join(schema.gpus, schema.gpus.c.id == schema.raw.c.gpu)
        .group_by(schema.gpus.c.id)
    )
    return {(name, bool(simulated)): at / MS for name, simulated, at in rows}


def _forget_sums_after(connection: Connection, now: int) -> None:
    """Remove sums in the future; compute a step that began before now from finer sums."""
    fine: Table | None = None
    for level in schema.LEVELS:
        table, first = level.table, now // level.step_s * level.step_s
        connection.execute(table.delete().where(table.c.begin >= first))
        if fine is not None:
            begin = (fine.c.begin - fine.c.begin % level.step_s).label("at")
            sums = [
                *(sa.func.sum(fine.c[name]) for name in ADDED),
                *(sa.func.max(fine.c[name]) for name in MOST),
                sa.func.min(fine.c.activity_min),
            ]
            again = sa.select(fine.c.gpu, begin, fine.c.holder, *sums)
            again = again.where(fine.c.begin >= first).group_by(fine.c.gpu, begin, fine.c.holder)
            names = ["gpu", "begin", "holder", *ADDED, *MOST, "activity_min"]
            connection.execute(table.insert().from_select(names, again))
        fine = table


def after(sample: GpuSample, known: float) -> GpuSample | None:
    """Return the part of a sample after a time, or None; its energy is cut too.

    >>> sample = GpuSample(at=20.0, span_s=10.0, gpu="a", activity=0.5, energy_j=100.0)
    >>> cut = after(sample, 18.0)
    >>> (cut.span_s, cut.energy_j), after(sample, 20.0)
    ((2.0, 20.0), None)
    """
    if sample.at <= known:
        return None
    span_s = min(sample.span_s, sample.at - known)
    energy_j = sample.energy_j
    if energy_j is not None and sample.span_s > 0:
        energy_j *= span_s / sample.span_s
    return replace(sample, span_s=span_s, energy_j=energy_j)


def write_gpus(connection: Connection, keys: Keys, samples: Sequence[HeldSample]) -> None:
    """Write samples of GPUs: raw, in minutes, in hours, and by holder."""
    if not samples:
        return
    rows = [_raw_row(connection, keys, it) for it in samples]
    connection.execute(dialect(connection).insert(schema.raw).on_conflict_do_nothing(), rows)
    sums = rolled(samples, schema.LEVELS[0].step_s)
    for level in schema.LEVELS:
        sums = coarser(sums, level.step_s)
        _add(
            connection,
            level.table,
            ("begin", "gpu", "holder"),
            (
                {
                    "gpu": keys.gpu(connection, bucket.gpu, bucket.simulated),
                    "begin": bucket.begin,
                    "holder": keys.holder(connection, bucket.holder),
                    **_columns(kept),
                }
                for bucket, kept in sums.items()
            ),
            ADDED,
            MOST,
            ("activity_min",),
        )
    _add(
        connection,
        schema.held,
        ("holder", "gpu"),
        (_held_row(connection, keys, it) for it in samples if it.holder != Holder()),
        ADDED,
        (*MOST, "last_ms"),
        ("activity_min", "first_ms"),
    )


def write_workers(connection: Connection, keys: Keys, samples: Sequence[HeldWorkerSample]) -> None:
    """Write samples of workers and benches: raw, and by holder."""
    if not samples:
        return
    rows = [
        {
            "holder": keys.holder(connection, it.holder),
            "until_ms": round(it.sample.at * MS),
            "span_ms": round(it.sample.span_s * MS),
            "cpu_ms": round(it.sample.cpu_s * MS),
            "milli_cpus": round(it.sample.cpus * 1000),
            "memory_mib": _mib(it.sample.memory_gib),
            "memory_peak_mib": _mib(it.sample.memory_peak_gib),
            "read_bytes": it.sample.read_bytes,
            "written_bytes": it.sample.written_bytes,
        }
        for it in samples
    ]
    into = dialect(connection).insert(schema.worker_raw)
    connection.execute(into.on_conflict_do_nothing(), rows)
    kept = [*schema.worker_total.c.keys()]
    _add(
        connection,
        schema.worker_total,
        ("holder",),
        ({key: value for key, value in _worker_total(row).items() if key in kept} for row in rows),
        ("covered_ms", "cpu_ms", "read_bytes", "written_bytes"),
        ("memory_peak_mib", "milli_cpus", "last_ms"),
        ("first_ms",),
    )


def prune(connection: Connection, now: float) -> None:
    """Remove rows beyond their retention."""
    old_raw = round((now - schema.RAW_DAYS * schema.DAY_S) * MS)
    for table in (schema.raw, schema.worker_raw):
        connection.execute(table.delete().where(table.c.until_ms < old_raw))
    for level in schema.LEVELS:
        old = round(now) - level.days * schema.DAY_S - level.step_s
        connection.execute(level.table.delete().where(level.table.c.begin < old))
    old_held = round((now - schema.HELD_DAYS * schema.DAY_S) * MS)
    gone = 0
    for table in (schema.held, schema.worker_total):
        gone += connection.execute(table.delete().where(table.c.last_ms < old_held)).rowcount
    if gone:
        holder, unnamed = schema.holders.c, sa.and_(*(it.is_(None) for it in _names()))
        kept = [sa.select(table.c.holder) for table in (schema.held, schema.worker_total)]
        unused = [holder.id.not_in(it) for it in kept]
        connection.execute(schema.holders.delete().where(sa.not_(unnamed), *unused))


# ---------------------------------------------------------------------------- rows


def _names() -> Sequence[sa.ColumnElement[object]]:
    return [schema.holders.c[name] for name in schema.HOLDER]


def _raw_row(connection: Connection, keys: Keys, held: HeldSample) -> dict[str, Any]:
    sample = held.sample
    span_ms = round(sample.at * MS) - round((sample.at - sample.span_s) * MS)

    def time(share: float | None) -> int | None:
        return None if share is None else round(min(max(share, 0.0), 1.0) * span_ms)

    return {
        "gpu": keys.gpu(connection, sample.gpu, sample.simulated),
        "until_ms": round(sample.at * MS),
        "holder": keys.holder(connection, held.holder),
        "span_ms": span_ms,
        "active_ms": time(sample.activity),
        "sm_active_ms": time(sample.sm_activity),
        "memory_mib": _mib(sample.memory_used_gib),
        "memory_total_mib": _mib(sample.memory_total_gib),
        "power_w": None if sample.power_w is None else round(sample.power_w),
        "energy_j": None if sample.energy_j is None else round(sample.energy_j),
        "temperature_c": None if sample.temperature_c is None else round(sample.temperature_c),
        "throttled": ",".join(sample.throttled) or None,
        "xid": sample.xid,
    }


def _held_row(connection: Connection, keys: Keys, held: HeldSample) -> dict[str, Any]:
    sample = held.sample
    sums = next(iter(rolled([held], 2**40).values()))  # one step longer than any time
    return {
        "holder": keys.holder(connection, held.holder),
        "gpu": keys.gpu(connection, sample.gpu, sample.simulated),
        "first_ms": round((sample.at - sample.span_s) * MS),
        "last_ms": round(sample.at * MS),
        **_columns(sums),
    }


def _worker_total(row: Mapping[str, Any]) -> Mapping[str, Any]:
    until_ms, span_ms = row["until_ms"], row["span_ms"]
    times = {"first_ms": until_ms - span_ms, "last_ms": until_ms, "covered_ms": span_ms}
    return {**row, **times}


def _columns(sums: Sums) -> dict[str, int | None]:
    return dict(zip(schema.SUMS, astuple(sums), strict=True))


def _mib(gib: float | None) -> int | None:
    return None if gib is None else round(gib * MIB)


def _add(
    connection: Connection,
    table: Table,
    key: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    added: Collection[str],
    most: Collection[str],
    least: Collection[str],
) -> None:
    """Insert rows; a row with an existing key is combined with it."""
    given = _merged(rows, key, added, most, least)
    if not given:
        return
    words = dialect(connection)
    into = words.insert(table)
    new = into.excluded

    def both(name: str, combine: str) -> Any:
        # If one of the two is null, the other counts.
        old = table.c[name]
        function = getattr(sa.func, combine)
        return function(sa.func.coalesce(old, new[name]), sa.func.coalesce(new[name], old))

    updates = {
        name: sa.func.coalesce(table.c[name] + new[name], table.c[name], new[name])
        for name in added
    }
    updates |= {name: both(name, words.most) for name in most}
    updates |= {name: both(name, words.least) for name in least}
    connection.execute(into.on_conflict_do_update(index_elements=key, set_=updates), given)


def _merged(
    rows: Iterable[Mapping[str, Any]],
    key: Sequence[str],
    added: Collection[str],
    most: Collection[str],
    least: Collection[str],
) -> list[dict[str, Any]]:
    """Return one row for each key: PostgreSQL allows no duplicate keys in one insertion."""
    ways: Sequence[tuple[Collection[str], Callable[[list[int]], int]]] = (
        (added, sum),
        (most, max),
        (least, min),
    )
    how = {name: way for names, way in ways for name in names}
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        one = found.setdefault(tuple(row[name] for name in key), {})
        for name, value in row.items():
            known = [it for it in (one.get(name), value) if it is not None]
            one[name] = how[name](known) if name in how and known else value
    return list(found.values())
