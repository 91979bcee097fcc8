"""Idle state of every bench, updated every few seconds by the core's table."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchpool_scheduler.configuration import IdleRule
from benchpool_scheduler.core.benches.giving_back import Giving
from benchpool_scheduler.core.benches.idle import RESTING, IdleStep, IdleWatch, looked
from benchpool_scheduler.service.benches.idle import exemptions, kept
from benchpool_scheduler.service.benches.idle.kept import KeptIdle, KeptWatch
from benchpool_scheduler.service.benches.idle.sights import BenchSights
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import LeaseRecord
from benchpool_scheduler.telemetry import HeldSample

log = logging.getLogger(__name__)

DAY_S = 86_400.0
SAVE_S = 60.0


@dataclass(slots=True)
class WatchedBench:
    """State of one bench.

    Attributes:
        keeps: Times at which its owner kept it, in the last 24 hours. ``kept_until``: end of the
            present keep.
        giving: Progress of its release since ``giving_since``. ``asked``: True if its owner
            requested the release, False if the rule did.
    """

    lease: LeaseRecord
    sights: BenchSights
    watch: IdleWatch = field(default_factory=IdleWatch)
    keeps: tuple[float, ...] = ()
    kept_until: float = 0.0
    giving: Giving = Giving.NONE
    giving_since: float = 0.0
    asked: bool = False


class IdleWatcher:
    """Tracks the idle state of all benches; it takes no action.

    Args:
        file: File that stores the state for a restart of the scheduler.

    Attributes:
        benches: State by lease ID. ``given_up``: ended leases whose server keeps running.
    """

    def __init__(self, ledger: Ledger, observed: SchedulerState, file: Path) -> None:
        self._ledger = ledger
        self._observed = observed
        self._file = file
        self._before = KeptIdle()
        self._rule = ""
        self._saved_at = float("-inf")
        self.benches: dict[str, WatchedBench] = {}
        self.given_up: tuple[str, ...] = ()

    @property
    def rule(self) -> IdleRule:
        """The rule in force."""
        return self._observed.now.configuration.idle_benches

    def now(self) -> float:
        """Return the present time, by a clock that only goes forward."""
        return self._observed.settings.clock.now()

    async def open(self) -> None:
        """Read the state that an earlier scheduler saved."""
        self._before = await asyncio.to_thread(kept.load, self._file)
        self._rule, self.given_up = _key(self.rule), self._before.given_up
        self.meet()

    def measured(self, samples: Iterable[HeldSample]) -> None:
        """Pass each sample to the bench that held the GPU according to the ledger."""
        for it in samples:
            bench = self.benches.get(it.holder.bench or "")
            if bench is not None:
                bench.sights.measured(it.sample)

    def meet(self) -> None:
        """Update the list of benches from the ledger."""
        there = {lease.id: lease for lease in self._ledger.leases()}
        for gone in self.benches.keys() - there.keys():
            del self.benches[gone]
        for id_, lease in there.items():
            if id_ not in self.benches:
                self.benches[id_] = self._restored(lease)
            self.benches[id_].lease = lease  # the user may have been renamed

    def bench(self, lease: LeaseRecord) -> WatchedBench:
        """Return the state of a bench."""
        if lease.id not in self.benches:
            self.meet()
        return self.benches[lease.id]

    def look(self) -> None:
        """Update the idle state of all benches."""
        self.meet()
        rule, now = self.rule, self.now()
        if _key(rule) != self._rule:
            # A changed rule starts every bench again, so that its owner is notified first.
            self._rule = _key(rule)
            for bench in self.benches.values():
                bench.watch = IdleWatch()
        for bench in self.benches.values():
            spared = bench.kept_until > now or self._is_spared(bench.lease)
            seen = bench.sights.taken(now, bench.watch.at, spared=spared)
            if seen is not None:
                bench.watch = looked(bench.watch, seen, rule.ladder)

    def _is_spared(self, lease: LeaseRecord) -> bool:
        """Return whether an exemption holds, or the bench is parked and its GPU lent."""
        parked = self._observed.now.parked
        return any(it in parked for it in lease.gpus) or self.exempt_until(lease) is not None

    def keep(self, bench: WatchedBench) -> int | None:
        """Keep a bench for its owner. Return how often it was kept, or None above the limit."""
        now, rule = self.now(), self.rule
        bench.keeps = tuple(at for at in bench.keeps if at > now - DAY_S)
        if len(bench.keeps) >= rule.keeps_a_day:
            return None
        bench.keeps = (*bench.keeps, now)
        bench.kept_until = now + rule.keep_s
        bench.watch = IdleWatch(IdleStep.USED, at=now, since=now)
        return len(bench.keeps)

    def keeps_left(self, bench: WatchedBench) -> int:
        """Return how often its owner may still keep it within 24 hours."""
        recent = sum(at > self.now() - DAY_S for at in bench.keeps)
        return max(0, self.rule.keeps_a_day - recent)

    def exempt_until(self, lease: LeaseRecord) -> float | None:
        """Return until when an exemption holds for a bench, or None."""
        seen, rule = self._observed.now, self.rule
        if not rule.exempt:
            return None
        names = exemptions.names(self._observed, lease.user, lease.server)
        return rule.exempt_until(names, self.now(), seen.configuration.gpu_hours.time_zone)

    async def save(self, *, at_once: bool = False) -> None:
        """Save the state for the next scheduler, once a minute or at once."""
        now = self.now()
        if not at_once and now - self._saved_at < SAVE_S:
            return
        self._saved_at = now
        servers = self._observed.settings.directory.servers()
        if servers is not None:
            held = {it.held.lease for it in servers if it.held is not None}
            self.given_up = kept.still_named(self.given_up, held)
        whole = KeptIdle(now, self._rule, dict(self._kept()), self.given_up)
        try:
            await asyncio.to_thread(kept.save, self._file, whole)
        except OSError as failed:
            # The next start then begins every idle time at zero, so no bench is released early.
            log.warning("the state of idle benches cannot be saved: %s", failed.strerror)

    def _kept(self) -> Iterable[tuple[str, KeptWatch]]:
        for id_, it in self.benches.items():
            watch = it.watch
            yield (
                id_,
                KeptWatch(
                    watch.step,
                    watch.idle_s,
                    watch.known_s,
                    it.sights.executions,
                    it.keeps,
                    it.kept_until,
                ),
            )

    def _restored(self, lease: LeaseRecord) -> WatchedBench:
        bench = WatchedBench(lease, BenchSights(lease.gpus))
        before = self._before.benches.get(lease.id)
        if before is None:
            return bench
        now = self.now()
        bench.sights.executions = before.executions
        bench.keeps, bench.kept_until = before.keeps, before.kept_until
        if self._before.rule == _key(self.rule):
            away_s = now - self._before.at
            bench.watch = kept.watch_after(before, away_s, now, self.rule.ladder)
        return bench

    def to_notify(self) -> Mapping[str, IdleStep]:
        """Return the benches whose owners are to be notified, with the step of the ladder."""
        if not self.rule.act:
            return {}
        rungs = RESTING - {IdleStep.IDLE}
        return {id_: it.watch.step for id_, it in self.benches.items() if it.watch.step in rungs}

    def give(self, bench: WatchedBench, giving: Giving) -> None:
        """Record the progress of a bench's release. Its end also ends its owner's request."""
        if giving is not bench.giving:
            bench.giving, bench.giving_since = giving, self.now()
            bench.asked = bench.asked and giving is not Giving.NONE


def _key(rule: IdleRule) -> str:
    without = replace(rule, exempt=(), keep_s=0.0, keeps_a_day=0)
    return repr(without)
