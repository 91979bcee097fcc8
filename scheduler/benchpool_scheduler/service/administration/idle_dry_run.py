"""Dry run of the rule for idle benches: the GPU-hours it would have freed by the recorded use.

It uses the ladder that decides about benches (``core.benches.idle``) with the times of the site,
and one sample for each bucket of the record. Benches under an exemption are left out. The activity
of kernels and terminals is not recorded, so a bench that used only processors counts as idle. The
answer states this.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from benchpool_scheduler.service.administration.idle_sparing import Sparing
from benchpool_scheduler.service.benches.idle import exemptions
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.telemetry import ActivityBucket, Database

HOUR_S, DAY_S = 3600.0, 86_400.0
FINEST_S = 900.0
"""Lower bound of the idle time that sets the resolution of the record, in seconds."""
LOOKS = 12
"""Minimum number of samples until a bench is due, where the record is fine enough."""

NOT_RECORDED = (
    "The use of kernels and terminals is not recorded: some of these hours may have been CPU "
    "work, which the rule does not count as idle. This answer reclaimed no GPUs."
)
SIMULATED = "GPUs are simulated here: they are as busy as the CPUs of their bench."


@dataclass(slots=True)
class _Bench:
    """Recorded activity of the GPUs of one lease, by the begin of each bucket."""

    user: str
    server: str
    gpus: set[str] = field(default_factory=set)
    stretches: dict[int, list[ActivityBucket]] = field(default_factory=lambda: defaultdict(list))


class IdleDryRun:
    """Dry runs on the record, one at a time."""

    def __init__(self, observed: SchedulerState, record: Database) -> None:
        self._observed = observed
        self._record = record
        self._busy = asyncio.Lock()

    async def ask(self, caller: Caller, query: IdleBenchesQuery) -> IdleBenches:
        """Return the GPU-hours that would be free. Errors: Forbidden for non-administrators."""
        rights.require_admin(caller, "replay the rule for idle benches")
        end = self._observed.settings.clock.now()
        begin = end - query.days * DAY_S
        ladder = _ladder(self._observed.now.configuration.idle_benches.ladder, query)
        at_most = int(LOOKS * (end - begin) / max(ladder.act_s, FINEST_S)) + 1
        async with self._busy:
            found = await asyncio.to_thread(self._read, begin, end, at_most)
        return self._answer(found, begin, end, ladder, query.days)

    def _answer(
        self,
        found: Sequence[ActivityBucket],
        begin: float,
        end: float,
        ladder: IdleLadder,
        days: float,
    ) -> IdleBenches:
        benches = _benches(found)
        span_s = max((it.span_s for it in found), default=0)
        configured = self._observed.now.configuration
        sparing = Sparing(configured.idle_benches.exempt, configured.gpu_hours.time_zone)
        freed: list[tuple[_Bench, tuple[int, float]]] = []
        for bench in benches.values():
            names = exemptions.names(self._observed, bench.user, bench.server)
            until = sparing.until(names)
            freed.append((bench, _freed(bench, span_s, end, ladder, until)))
            if until > begin:
                without = _freed(bench, span_s, end, ladder, float("-inf"))
                less_h = (without[1] - freed[-1][1][1]) / HOUR_S
                sparing.spared(names, (bench.user, bench.server), less_h)
        rows = _rows(freed)
        gpu_h = sum(it.gpu_h for it in rows)
        measured_h = sum(it.covered_s for it in found) / HOUR_S
        simulated = any(it.simulated for it in found)
        idle, ago = phrases.exactly(ladder.act_s), phrases.count(days, "day")
        found_any = bool(rows) or sparing.servers > 0
        notes = _notes(found_any, simulated, span_s, ladder.act_s)
        return IdleBenches(
            text=_text(gpu_h, measured_h, rows, idle, ago, sparing.servers > 0),
            notes=[*sparing.notes(), *notes],
            begin=moment(begin),
            end=moment(end),
            minutes=ladder.act_s / 60.0,
            gpu_h=round(gpu_h, 3),
            measured_gpu_h=round(measured_h, 3),
            simulated=simulated,
            rows=rows,
            exemptions=sparing.answer(end),
        )

    def _read(self, begin: float, end: float, at_most: int) -> list[ActivityBucket]:
        buckets = self._record.buckets(None, begin, end, at_most, by_holder=True)
        return [it for it in buckets if it.holder.bench is not None and it.covered_s]


def _ladder(site: IdleLadder, query: IdleBenchesQuery) -> IdleLadder:
    """Return the ladder of the site, or one scaled to ``minutes`` if the query sets it."""
    if query.minutes is None:
        return site
    act_s = query.minutes * 60.0
    return replace(site, tell_s=act_s / 4, ask_s=act_s * 3 / 4, act_s=act_s)


def _benches(found: Iterable[ActivityBucket]) -> Mapping[str, _Bench]:
    benches: dict[str, _Bench] = {}
    for it in found:
        holder = it.holder
        key = holder.bench or ""
        bench = benches.setdefault(key, _Bench(holder.user or "", holder.server or ""))
        bench.gpus.add(it.gpu)
        bench.stretches[it.begin].append(it)
    return benches


def _freed(
    bench: _Bench, span_s: int, end: float, ladder: IdleLadder, spared_until: float
) -> tuple[int, float]:
    """Return how often a bench would have been reclaimed, and for how many GPU-seconds."""
    watch, times, freed_s, until = IdleWatch(), 0, 0.0, None
    for seen in _sightings(bench, span_s, end):
        watch = looked(watch, replace(seen, spared=seen.at < spared_until), ladder)
        if watch.step not in RESTING:
            until = None
        elif watch.step is IdleStep.DUE:
            times += until is None
            freed_s += seen.at - (watch.since + ladder.act_s if until is None else until)
            until = seen.at
    return times, freed_s * len(bench.gpus)


def _sightings(bench: _Bench, span_s: int, end: float) -> Iterator[Sighting]:
    """Yield a sample at the end of each bucket; it is unmeasured unless all GPUs were measured."""
    first = min(bench.stretches)
    yield Sighting(at=float(first))
    for begin in sorted(bench.stretches):
        buckets = bench.stretches[begin]
        whole = len({it.gpu for it in buckets}) == len(bench.gpus)
        yield Sighting(
            at=min(float(begin + span_s), end),
            measured_s=min(it.covered_s for it in buckets) if whole else 0.0,
            activity=max(_most(it) for it in buckets),
            working=False,
        )


def _most(bucket: ActivityBucket) -> float:
    return bucket.activity_max or 0.0


def _rows(freed: Iterable[tuple[_Bench, tuple[int, float]]]) -> list[IdleBench]:
    """Return the GPU-hours that the rule would have freed of each server, largest first."""
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
    gpu_h: float,
    measured_h: float,
    rows: Sequence[IdleBench],
    idle: str,
    days: str,
    spared: bool,
) -> str:
    if not measured_h:
        return f"No bench was measured in the last {days}."
    if not rows:
        which = "No bench without an exemption" if spared else "No bench"
        return f"{which} was idle for {idle} in the last {days}, as far as measured."
    people = phrases.count(len(rows), "server")
    return (
        f"Reclaimed after {idle} of idleness, benches would have freed "
        f"{phrases.gpu_hours(gpu_h)} GPU-hours in the last {days}, from {people}; "
        f"{phrases.gpu_hours(measured_h)} were measured on benches."
    )


def _notes(found: bool, simulated: bool, span_s: int, act_s: float) -> Iterator[str]:
    if found:
        yield NOT_RECORDED
    if span_s * 4 > act_s:
        yield (
            f"Records of such a long time have steps of {phrases.exactly(span_s)}: shorter idle "
            "times are not found. Use fewer days."
        )
    if simulated:
        yield SIMULATED
