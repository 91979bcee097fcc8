"""Release of idle benches, by their notebook server where it supports that, else by the Hub.

The table in ``core.benches.giving_back`` decides the next action. This module carries it out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler import phrases
from benchpool_scheduler.contract.idle_benches import BenchAct
from benchpool_scheduler.core.benches.giving_back import (
    GIVING,
    STOPS,
    TAKES_S,
    Giving,
    GivingNews,
)
from benchpool_scheduler.core.benches.idle import IdleStep
from benchpool_scheduler.errors import BenchpoolError, Refused, Unavailable
from benchpool_scheduler.hub import StopsServers
from benchpool_scheduler.runtime import Holding, Runtime
from benchpool_scheduler.service.benches.idle.parking_first import ParkingFirst
from benchpool_scheduler.service.benches.idle.watcher import IdleWatcher, WatchedBench
from benchpool_scheduler.service.benches.reservations import Leases
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import LeaseRecord

_PROBLEM = "idle-benches"

_IN_USE = frozenset({IdleStep.USED, IdleStep.CPU_PHASE})


@dataclass(frozen=True, slots=True)
class BenchGiven:
    """Start or end of the release of a bench.

    Attributes:
        act: The action taken. ``asked``: True if the owner requested it, False if the rule did.
        done: True if the release is over, False if it has just begun. ``looked``: True if this
            service checked that no process is on the GPUs, False if only the bench's end is known.
        idle_s: How long the bench had been idle. ``coverage``: the measured part of that time.
    """

    lease: LeaseRecord
    act: BenchAct
    asked: bool
    done: bool
    idle_s: float
    coverage: float
    act_s: float
    looked: bool = False


class BenchGiver:
    """Releases benches that are due.

    Attributes:
        given: Publishes each action.
    """

    def __init__(
        self, watcher: IdleWatcher, observed: SchedulerState, runtime: Runtime, reservations: Leases
    ) -> None:
        self._watcher = watcher
        self._observed = observed
        self._runtime = runtime
        self._reservations = reservations
        self._parking = ParkingFirst(reservations.parking)
        self._stopping: dict[str, WatchedBench] = {}
        self._is_refused = False
        self.given: Topic[BenchGiven] = Topic()

    def act_of(self, bench: WatchedBench) -> BenchAct:
        """Return how a bench is released. Its server keeps running if it can work without GPUs."""
        report, fresh = bench.sights.last_report, bench.sights.is_fresh(self._watcher.now())
        alone = self._observed.settings.containers is None and isinstance(self._runtime, Holding)
        if bench.giving in STOPS:
            return BenchAct.STOP
        if alone and fresh and report is not None and report.gives_up:
            return BenchAct.RELEASE
        return BenchAct.STOP

    def parks(self, bench: WatchedBench) -> bool:
        """Return whether the rule tries to park a bench before its kernels lose their GPUs."""
        return self._parking.wanted and self.act_of(bench) is BenchAct.RELEASE

    def is_parking(self, bench: WatchedBench) -> bool:
        """Return whether a bench is being parked."""
        return self._parking.under_way(bench)

    async def _park(self, bench: WatchedBench) -> bool:
        """Park a due bench if possible. Return whether it is being parked."""
        if bench.giving is Giving.NONE and self.parks(bench) and await self._parking.begin(bench):
            bench.asked = False
            self._publish(bench, BenchAct.PARK, done=False)
        return self.is_parking(bench)

    def begin(self, bench: WatchedBench, *, asked: bool) -> None:
        """Begin the release of a bench, unless one is in progress."""
        if bench.giving is not Giving.NONE:
            return
        act = self.act_of(bench)
        news = GivingNews.RELEASE if act is BenchAct.RELEASE else GivingNews.STOP
        bench.asked = asked
        self._publish(bench, act, done=False)
        self._on(bench, news)

    def noted(self, bench: WatchedBench) -> None:
        """Record that the note lies in the folder."""
        self._on(bench, GivingNews.NOTED)

    def drop(self, bench: WatchedBench) -> None:
        """Drop the release of a bench, unless the Hub is stopping its server."""
        self._on(bench, GivingNews.USED)

    def _on(self, bench: WatchedBench, news: GivingNews) -> None:
        self._watcher.give(bench, GIVING[bench.giving][news])

    async def advance(self) -> None:
        """Drop releases of benches in use again, have servers stopped, and begin due releases."""
        there = self._watcher.benches
        for bench in there.values():
            self._proceed(bench)
        await self._stop_servers()
        for bench in list(there.values()):
            if self._is_due(bench) and not await self._park(bench):
                self.begin(bench, asked=False)
        still = {id_ for id_, it in there.items() if it.watch.step is IdleStep.DUE}
        for bench in self._parking.parked(still):
            self._publish(bench, BenchAct.PARK, done=True)

    def _proceed(self, bench: WatchedBench) -> None:
        """Take the step that follows from time, then the step that follows from use."""
        was_requested = bench.giving in (Giving.STOPPING, Giving.STOP_REFUSED)
        if self._watcher.now() - bench.giving_since > TAKES_S.get(bench.giving, float("inf")):
            self._on(bench, GivingNews.LATE)
        if bench.asked:
            # The owner requested it beside this use. Use after a request without effect ends it.
            is_over = was_requested and bench.watch.step in _IN_USE
        else:
            is_over = not self._is_due(bench)
        if is_over:
            self._on(bench, GivingNews.USED)

    def _is_due(self, bench: WatchedBench) -> bool:
        return self._watcher.rule.act and bench.watch.step is IdleStep.DUE

    async def _stop_servers(self) -> None:
        """Ask the Hub to stop the servers that are due, and record those that have stopped."""
        there = self._watcher.benches
        for id_ in self._stopping.keys() - there.keys():
            await self._stopped(self._stopping.pop(id_))
        due = {id_: it for id_, it in there.items() if it.giving is Giving.STOP_DUE}
        for bench in due.values():
            self._on(bench, GivingNews.REQUESTED)
        await asyncio.gather(*(self._stop(bench) for bench in due.values()))
        asked = self._stopping | due  # a server may have stopped before the Hub's answer
        self._stopping = {id_: it for id_, it in asked.items() if it.giving is Giving.STOPPING}
        is_refused = any(it.giving is Giving.STOP_REFUSED for it in there.values())
        if self._is_refused and not is_refused:
            self._observed.report(_PROBLEM, None)
        self._is_refused = is_refused

    async def _stopped(self, bench: WatchedBench) -> None:
        """Check that no process of a stopped server is on its GPUs, if the runtime can see them."""
        held = None
        if isinstance(self._runtime, Holding):
            held = await self._runtime.holders(bench.lease.gpus)
        if held:
            holders = f"{phrases.processes(held)} on the GPUs of the bench of {bench.lease.user}"
            self._observed.report(
                _PROBLEM, f"{holders} that was stopped. Find out why, and end them."
            )
            return
        self._observed.report(_PROBLEM, None)
        self._publish(bench, BenchAct.STOP, done=True, looked=held is not None)

    async def _stop(self, bench: WatchedBench) -> None:
        lease, directory = bench.lease, self._observed.settings.directory
        try:
            if not isinstance(directory, StopsServers):
                raise Unavailable("no Hub is connected.")
            await directory.stop_server(lease.user, lease.server)
        except BenchpoolError as error:
            self._on(bench, GivingNews.REFUSED)
            self._observed.report(
                _PROBLEM, f"An idle bench of {lease.user} is not stopped: {error.message}"
            )

    async def released(self, bench: WatchedBench) -> None:
        """End a lease whose server keeps running, after checking that no process is on its GPUs.

        Errors: Refused ``gpu-held``, Unavailable if the check is impossible or the store fails.
        """
        held = await self._holders(bench.lease.gpus)
        if held:
            raise Refused(
                f"{phrases.processes(held)} on the GPUs of this bench. End them, then report the "
                "release again.",
                code="gpu-held",
                numbers={"processes": len(held)},
            )
        self._watcher.given_up = (*self._watcher.given_up, bench.lease.id)
        await self._watcher.save(at_once=True)
        self._publish(bench, BenchAct.RELEASE, done=True, looked=True)
        await self._reservations.release(bench.lease.id)

    async def _holders(self, gpus: Sequence[str]) -> Sequence[int]:
        found = None
        if isinstance(self._runtime, Holding):
            found = await self._runtime.holders(gpus)
        if found is None:
            raise Unavailable(
                "The processes on the GPUs of this bench cannot be listed now. Try again.",
                code="gpu-unknown",
            )
        return found

    def _publish(
        self, bench: WatchedBench, act: BenchAct, *, done: bool, looked: bool = False
    ) -> None:
        watch = bench.watch
        coverage = min(1.0, watch.known_s / watch.idle_s) if watch.idle_s else 0.0
        self.given.publish(
            BenchGiven(
                lease=bench.lease,
                act=act,
                asked=bench.asked,
                done=done,
                idle_s=watch.idle_s,
                coverage=coverage,
                act_s=self._watcher.rule.act_s,
                looked=looked,
            )
        )
