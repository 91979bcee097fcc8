"""Driver errors: GPU, time, number and holder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from benchpool_scheduler.telemetry import schema
from benchpool_scheduler.telemetry.rollup import MS
from benchpool_scheduler.telemetry.samples import Holder

MINUTE_S = schema.LEVELS[0].step_s


@dataclass(frozen=True, slots=True)
class XidSeen:
    """One driver error.

    Attributes:
        at: End of its sample, epoch seconds.
        xid: Its number.
        holder: The GPU's holder at that time.
    """

    gpu: str
    at: float
    xid: int
    holder: Holder


def between(connection: Connection, begin: float, end: float, at_most: int) -> Sequence[XidSeen]:
    """Return the newest errors in a range, newest first.

    The table of minutes has the minutes with errors, so that few of the raw rows are read. Error
    numbers are kept as long as raw rows: two days.
    """
    first = int(begin // MINUTE_S * MINUTE_S)
    minute, raw, gpu, holder = schema.minutes.c, schema.raw.c, schema.gpus.c, schema.holders
    where = (minute.xids > 0, minute.begin >= first, minute.begin < end)
    times = connection.execute(
        sa.select(minute.begin).distinct().where(*where).order_by(minute.begin.desc())
    ).scalars()
    found: list[XidSeen] = []
    for at in list(times)[:at_most]:
        rows = connection.execute(
            sa.select(raw.until_ms, raw.xid, gpu.name, *holder.c)
            .join_from(schema.raw, schema.gpus, gpu.id == raw.gpu)
            .join(holder, holder.c.id == raw.holder)
            .where(
                raw.xid.is_not(None),
                raw.until_ms > at * MS,
                raw.until_ms <= (at + MINUTE_S) * MS,
            )
        ).mappings()
        found += [
            XidSeen(
                row["name"],
                row["until_ms"] / MS,
                row["xid"],
                Holder(**{name: row[name] for name in schema.HOLDER}),
            )
            for row in rows
        ]
    return sorted(found, key=lambda it: -it.at)[:at_most]
