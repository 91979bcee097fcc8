"""What would have been free if idle benches had been given back: the ladder over what was measured.

It is the same ladder that decides about a bench (``core.benches.idle``), with one look for each
stretch of the record. What kernels and terminals did is not recorded, so a bench that worked on
processors alone counts as idle here; the answer says so.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler import phrases
from benchpool_scheduler.contract.use import IdleBench, IdleBenches, IdleBenchesQuery
from benchpool_scheduler.core.benches.idle import (
    RESTING,
    IdleLadder,
    IdleStep,
    IdleWatch,
    Sighting,
    looked,
)
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.telemetry import ActivityBucket, Database

HOUR_S, DAY_S = 3600.0, 86_400.0
LOOKS = 12
"""Looks in the time until a bench is due, at least, where the record is so fine."""

NOT_RECORDED = (
    "What kernels and terminals did is not recorded: some of these hours may have been work on "
    "processors alone, which the rule leaves alone. Nothing was given back for this answer."
)
SIMULATED = "GPUs are simulated here: they are as busy as the processors of their bench."


@dataclass(slots=True)
class _Bench:
    """One lease: what its GPUs did in each stretch of the record."""

    user: str
    server: str
    gpus: set[str] = field(default_factory=set)
    stretches: dict[int, list[ActivityBucket]] = field(default_factory=lambda: defaultdict(list))


class IdleDryRun:
    """Answers from the record, one question at a time."""

    def __init__(self, observed: Observed, record: Database) -> None:
        self._observed = observed
        self._record = record
        self._busy = asyncio.Lock()

    async def ask(self, caller: Caller, query: IdleBenchesQuery) -> IdleBenches:
        """Say what would have been free. Errors: Forbidden for others than administrators."""
        rights.require_admin(caller, "ask what idle benches would have given back")
        end = self._observed.settings.clock.now()
        begin = end - query.days * DAY_S
        at_most = int(LOOKS * (end - begin) / (query.minutes * 60.0)) + 1
        async with self._busy:
            found = await asyncio.to_thread(self._read, begin, end, at_most)
        return _answer(found, begin, end, query)

    def _read(self, begin: float, end: float, at_most: int) -> list[ActivityBucket]:
        buckets = self._record.buckets(None, begin, end, at_most, by_holder=True)
        return [it for it in buckets if it.holder.bench is not None and it.covered_s]


def _answer(
    found: Sequence[ActivityBucket], begin: float, end: float, query: IdleBenchesQuery
) -> IdleBenches:
    benches = _benches(found)
    span_s = max((it.span_s for it in found), default=0)
    act_s = query.minutes * 60.0
    ladder = IdleLadder(tell_s=act_s / 4, ask_s=act_s * 3 / 4, act_s=act_s)
    freed = {id_: _freed(bench, span_s, end, ladder) for id_, bench in benches.items()}
    rows = _rows((bench, freed[id_]) for id_, bench in benches.items())
    gpu_h = sum(it.gpu_h for it in rows)
    measured_h = sum(it.covered_s for it in found) / HOUR_S
    simulated = any(it.simulated for it in found)
    return IdleBenches(
        text=_text(gpu_h, measured_h, rows, query),
        notes=list(_notes(bool(rows), simulated, span_s, act_s)),
        begin=moment(begin),
        end=moment(end),
        minutes=query.minutes,
        gpu_h=round(gpu_h, 3),
        measured_gpu_h=round(measured_h, 3),
        simulated=simulated,
        rows=rows,
    )


def _benches(found: Iterable[ActivityBucket]) -> Mapping[str, _Bench]:
    benches: dict[str, _Bench] = {}
    for it in found:
        holder = it.holder
        key = holder.bench or ""
        bench = benches.setdefault(key, _Bench(holder.user or "", holder.server or ""))
        bench.gpus.add(it.gpu)
        bench.stretches[it.begin].append(it)
    return benches


def _freed(bench: _Bench, span_s: int, end: float, ladder: IdleLadder) -> tuple[int, float]:
    """Return how often a bench would have been given back, and for how many GPU seconds."""
    watch, times, freed_s, until = IdleWatch(), 0, 0.0, None
    for seen in _sightings(bench, span_s, end):
        watch = looked(watch, seen, ladder)
        if watch.step not in RESTING:
            until = None
        elif watch.step is IdleStep.DUE:
            times += until is None
            freed_s += seen.at - (watch.since + ladder.act_s if until is None else until)
            until = seen.at
    return times, freed_s * len(bench.gpus)


def _sightings(bench: _Bench, span_s: int, end: float) -> Iterator[Sighting]:
    """Yield a look at the end of each stretch; what is not told of all GPUs is not known."""
    first = min(bench.stretches)
    yield Sighting(at=float(first))
    for begin in sorted(bench.stretches):
        told = bench.stretches[begin]
        whole = len({it.gpu for it in told}) == len(bench.gpus)
        yield Sighting(
            at=min(float(begin + span_s), end),
            measured_s=min(it.covered_s for it in told) if whole else 0.0,
            activity=max(_most(it) for it in told),
            working=False,
        )


def _most(bucket: ActivityBucket) -> float:
    return bucket.activity_max or 0.0


def _rows(freed: Iterable[tuple[_Bench, tuple[int, float]]]) -> list[IdleBench]:
    """Return what each server would have given back, the most first."""
    found: dict[tuple[str, str], IdleBench] = {}
    for bench, (times, freed_s) in freed:
        if not times:
            continue
        key = bench.user, bench.server
        before = found.get(key, IdleBench(*key, gpus=0, times=0, gpu_h=0.0))
        found[key] = IdleBench(
            *key,
            gpus=max(before.gpus, len(bench.gpus)),
            times=before.times + times,
            gpu_h=round(before.gpu_h + freed_s / HOUR_S, 3),
        )
    return sorted(found.values(), key=lambda it: (-it.gpu_h, it.user, it.server))


def _text(
    gpu_h: float, measured_h: float, rows: Sequence[IdleBench], query: IdleBenchesQuery
) -> str:
    idle = phrases.exactly(query.minutes * 60.0)
    days = phrases.count(query.days, "day")
    if not measured_h:
        return f"No bench was measured in the last {days}."
    if not rows:
        return f"No bench was idle for {idle} in the last {days}, as far as was measured."
    people = phrases.count(len(rows), "server")
    return (
        f"Given back after {idle} of idleness, benches would have freed "
        f"{phrases.gpu_hours(gpu_h)} GPU-hours in the last {days}, from {people}; "
        f"{phrases.gpu_hours(measured_h)} were measured on benches."
    )


def _notes(found: bool, simulated: bool, span_s: int, act_s: float) -> Iterator[str]:
    if found:
        yield NOT_RECORDED
    if span_s * 4 > act_s:
        yield (
            f"The record of so long a time is kept in steps of {phrases.exactly(span_s)}: shorter "
            "idle times are not found. Name fewer days."
        )
    if simulated:
        yield SIMULATED
