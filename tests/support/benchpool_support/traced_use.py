"""The recorded use of a pool that worked through a trace, for pages and figures.

Jobs of the trace come in its order, with its GPUs and run times, to nodes that accept them as they
become free. Some GPUs of each node are benches by day. The activity of the GPUs is made up from a
number: some jobs compute all the time, some partly, and some leave their GPUs idle.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import sqlalchemy as sa

from benchpool_scheduler.accounting.classes import GpuUseKind
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder, GpuInterval
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.simulation.replay.trace import TraceJob
from benchpool_scheduler.telemetry import Holder, occupancies, schema

TEAMS = {
    "vision": ("susan", "amara", "felix"),
    "speech": ("joe", "noor"),
    "robotics": ("jemma", "yusuf", "oscar"),
    "genomics": ("tariq",),
}
DAY_S, HOUR_S = 86_400, 3600
LONGEST_S = 2 * DAY_S
PREPARING_S = 90.0
BENCHES_OF_NODE = 2


@dataclass(frozen=True, slots=True)
class Span:
    """Part of one GPU's history, with its activity while it was active."""

    occupancy: GpuInterval
    activity: float
    since: float
    """End of the kernels, as a part of the span."""


def whose(number: int) -> tuple[str, str]:
    """Return project and user of a job by its line in the trace."""
    project = list(TEAMS)[number * 7919 % 10 % len(TEAMS)]
    users = TEAMS[project]
    return project, users[number // 3 % len(users)]


def worked_through(
    jobs: Sequence[TraceJob], nodes: Sequence[Sequence[Device]], begin: float, end: float
) -> Iterator[Span]:
    """Yield the history of all GPUs of these nodes, one GPU after the other, without gaps."""
    coming = itertools.cycle(
        [job for job in jobs if job.gpus <= 4 and 300 < job.duration_s < LONGEST_S]
    )
    for number, devices in enumerate(nodes):
        benches = devices[:BENCHES_OF_NODE]
        for place, device in enumerate(benches):
            yield from _bench(device, number * BENCHES_OF_NODE + place, begin, end)
        yield from _training(devices[BENCHES_OF_NODE:], coming, begin, end, random.Random(number))


def _bench(device: Device, number: int, begin: float, end: float) -> Iterator[Span]:
    """Yield days on which a user has a bench, between nights on which it is kept free."""
    users = [user for team in TEAMS.values() for user in team]
    user = users[number % len(users)]
    at = begin
    while at < end:
        day = at // DAY_S * DAY_S
        opens, closes = day + 8.5 * HOUR_S, day + (17 + number % 4) * HOUR_S
        held = opens <= at < closes and (int(day // DAY_S) + number) % 5 > 0
        until = min(end, closes if held else opens if at < opens else day + DAY_S + 8.5 * HOUR_S)
        if not held and opens <= at < closes:
            until = min(end, closes)
        who = GpuHolder(GpuUseKind.RESERVED)
        if held:
            who = GpuHolder(GpuUseKind.BENCH, user=user, bench=f"b{number}-{int(day // DAY_S)}")
        yield Span(_occupancy(device, at, until, who), 0.06 + 0.4 * (number % 3 == 0), 0.7)
        at = until


def _training(
    devices: Sequence[Device],
    coming: Iterator[TraceJob],
    begin: float,
    end: float,
    luck: random.Random,
) -> Iterator[Span]:
    """Yield jobs of the trace one after the other, as soon as their GPUs are free together."""
    free = {device.uuid: (device, begin) for device in devices}
    busy: list[tuple[float, str]] = []
    known = {device.uuid: device for device in devices}
    now = begin
    while now < end:
        job = next(coming)
        now += luck.expovariate(1 / 400)
        while (len(free) < job.gpus or (busy and busy[0][0] <= now)) and busy:
            ended, uuid = heapq.heappop(busy)
            now = max(now, ended)
            free[uuid] = (known[uuid], ended)
        if len(free) < job.gpus or now >= end:
            continue
        project, user = whose(job.line)
        who = GpuHolder(GpuUseKind.TRAINING, user, project, f"t{job.line}-{int(now)}", 1)
        kind = luck.random()
        activity = 0.9 if kind > 0.45 else 0.55 if kind > 0.25 else 0.2
        since = 0.35 if kind < 0.15 else 1.0
        for uuid in sorted(free)[: job.gpus]:
            device, left = free.pop(uuid)
            idle = GpuUseKind.WANTED if luck.random() < 0.15 else GpuUseKind.FREE
            until = min(end, now + job.duration_s)
            yield Span(_occupancy(device, left, now, GpuHolder(idle)), 0.0, 0.0)
            starts = min(until, now + PREPARING_S)
            prepares = GpuHolder(GpuUseKind.PREPARING, who.user, who.project, who.job, 1)
            yield Span(_occupancy(device, now, starts, prepares), 0.0, 0.0)
            yield Span(_occupancy(device, starts, until, who), activity, since)
            heapq.heappush(busy, (until, uuid))
    for device, left in free.values():
        yield Span(_occupancy(device, left, end, GpuHolder(GpuUseKind.FREE)), 0.0, 0.0)


def _occupancy(device: Device, begin: float, end: float, who: GpuHolder) -> GpuInterval:
    return GpuInterval(device.uuid, device.node, device.model, begin, end, who)


# ---------------------------------------------------------------------------- the database


def fill(file: Path, spans: Iterable[Span], *, minutes_since: float) -> None:
    """Write a history into an empty telemetry database, in the form that the service writes.

    Args:
        minutes_since: Time from which there are sums of minutes, too.
    """
    engine = sa.create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        connection.exec_driver_sql(f"PRAGMA user_version = {schema.LAYOUT}")
        schema.metadata.create_all(connection)
        writer = _Writer(connection)
        for span in spans:
            if span.occupancy.end > span.occupancy.begin:
                writer.write(span, minutes_since)
        writer.flush()
    engine.dispose()


class _Writer:
    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._gpus: dict[str, int] = {}
        self._holders: dict[Holder, int] = {}
        self._rows: dict[str, dict[tuple[int, int, int], list[int]]] = {}
        self._occupancies: list[GpuInterval] = []

    def write(self, span: Span, minutes_since: float) -> None:
        one = span.occupancy
        self._occupancies.append(one)
        who = one.occupant
        if who.occupation in (GpuUseKind.TRAINING, GpuUseKind.BENCH):
            holder = (
                Holder(bench=who.bench, server="", user=who.user)
                if who.bench
                else Holder(who.job, 1, 0, user=who.user, project=who.project)
            )
        else:
            holder = Holder()
        gpu = self._gpu(one.gpu)
        number = self._holder(holder)
        for level in schema.LEVELS:
            begin = one.begin if level.step_s == HOUR_S else max(one.begin, minutes_since)
            for at in range(int(begin // level.step_s * level.step_s), int(one.end), level.step_s):
                covered = min(at + level.step_s, one.end) - max(at, begin)
                if covered > 0:
                    self._add(level.table, (at, gpu, number), covered, self._active(span, at))
        if len(self._rows) > 0 and sum(map(len, self._rows.values())) > 50_000:
            self.flush()

    def _active(self, span: Span, at: float) -> float:
        one = span.occupancy
        if one.occupant.occupation not in (GpuUseKind.TRAINING, GpuUseKind.BENCH):
            return 0.0
        if (at - one.begin) / (one.end - one.begin) > span.since:
            return 0.0
        wave = ((at // 600 * 2654435761) % 1000) / 1000
        return max(0.0, min(1.0, span.activity * (0.75 + 0.5 * wave)))

    def _add(
        self, table: sa.Table, key: tuple[int, int, int], covered_s: float, active: float
    ) -> None:
        sums = self._rows.setdefault(table.name, {}).setdefault(key, [0, 0])
        sums[0] += round(covered_s * 1000)
        sums[1] += round(covered_s * active * 1000)

    def flush(self) -> None:
        for level in schema.LEVELS:
            rows = [
                (*key, *_sums(covered, active))
                for key, (covered, active) in self._rows.pop(level.table.name, {}).items()
            ]
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                insert = f"INSERT OR IGNORE INTO {level.table.name} VALUES ({marks})"  # noqa: S608
                self._connection.exec_driver_sql(insert, rows)
        occupancies.keep(self._connection, self._occupancies)
        self._occupancies.clear()

    def _gpu(self, name: str) -> int:
        if name not in self._gpus:
            self._gpus[name] = len(self._gpus) + 1
            row = {"id": self._gpus[name], "name": name, "simulated": 0}
            self._connection.execute(schema.gpus.insert(), row)
        return self._gpus[name]

    def _holder(self, holder: Holder) -> int:
        if holder not in self._holders:
            self._holders[holder] = len(self._holders) + 1
            values = dict(zip(schema.HOLDER, astuple(holder), strict=True))
            row = {"id": self._holders[holder], **values}
            self._connection.execute(schema.holders.insert(), row)
        return self._holders[holder]


def _sums(covered_ms: int, active_ms: int) -> tuple[int | None, ...]:
    """Return the columns of ``Sums``, in their order."""
    share = round(1000 * active_ms / max(1, covered_ms))
    return (
        *(covered_ms, active_ms, 0, 0, round(covered_ms / 1000 * (80 + share * 0.5)), 0, 0),
        *(40_000 if share else 2_000, 35 + share // 25),
        *(max(0, share - 100), min(1000, share + 100)),
    )
