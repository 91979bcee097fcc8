"""The pass loop: observe, decide, commit, act.

A pass follows every event that may change the result. A burst of events leads to one pass. The
facts do not change between reading and commit (``Ledger.lock``), and no action precedes the commit.

A separate thread decides and collects the changes, so reads and submissions continue meanwhile. The
loop then applies the changes in parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.core.lifecycle.states import HOLDS_GPUS, JobState
from benchpool_scheduler.core.model import JobId, Plan, Preempt, Start, WaitReason
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.cluster_state.doubtful_plans import FOLDER, DoubtfulPlans
from benchpool_scheduler.service.cluster_state.state_cache import PassInput, StateCache
from benchpool_scheduler.service.execution import calling_back, dependencies
from benchpool_scheduler.service.execution.actions import Actions
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.service.ledger.unit_of_work import UnitOfWork
from benchpool_scheduler.service.lifecycle import notices, transitions
from benchpool_scheduler.service.observed.latest_pass import LatestPass
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import Change, JobRecord, PreemptionRecord, StopIntent

log = logging.getLogger(__name__)

DEBOUNCE_S = 0.01
REST, MOST_REST_S = 1.0, 0.5
"""Pause after a pass: ``REST`` times its duration, at most ``MOST_REST_S`` seconds."""

SHORTEST_S, LONGEST_S = 0.05, 60.0
"""Shortest and longest time between passes while jobs wait, in seconds.

The longest one applies regardless of the plan, in case a clock is set or a fault occurs.
"""

RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class PassNews:
    """Changes of a pass in the information that users see.

    Attributes:
        jobs: Jobs with a first or different reason, and jobs that have become over quota or are so
            no longer.
        shifts: Jobs whose reason is the same with other numbers.
    """

    jobs: Collection[str]
    shifts: Collection[str]


@dataclass(frozen=True, slots=True)
class PassOutput:
    """Result of the pass thread; ``problem`` describes a fault of the core, or is None."""

    plan: Plan
    problem: str | None
    work: UnitOfWork
    changes: tuple[Change, ...]
    news: PassNews


class Passes:
    """The pass loop.

    Args:
        before: Called at the start of each pass with the ledger's lock: benches come first (R3).

    Attributes:
        made: Published after each pass. ``preempted``: its preemptions, once they are written.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        actions: Actions,
        state_cache: StateCache,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._actions = actions
        self._state_cache = state_cache
        self._before = before
        self._doubtful = DoubtfulPlans(observed.settings.state / "scheduler" / FOLDER)
        self.made: Topic[PassNews] = Topic()
        self.preempted: Topic[Sequence[Preempt]] = Topic()
        self.wanted = asyncio.Event()
        self._wake: float | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="benchpool-pass")

    def want(self) -> None:
        """Request a pass soon. Repeating it before the pass begins changes nothing."""
        self.wanted.set()

    def close(self) -> None:
        """End the thread. No pass may be running."""
        self._thread.shutdown()

    async def run(self) -> None:
        """Run requested passes until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience_s()):
                    await self.wanted.wait()
            await asyncio.sleep(DEBOUNCE_S)
            self.wanted.clear()
            await self._guarded_pass()
            await asyncio.sleep(min(MOST_REST_S, REST * self._observed.now.latest_pass.last_pass_s))

    def _patience_s(self) -> float | None:
        """Return the seconds until a pass runs without an event, or None for never.

        Protections end (R19), reservations come due (R14), an hour's preemptions expire (R19).
        """
        if not self._ledger.counters.in_queue():
            return None
        now = self._observed.settings.clock.now()
        known = (self._wake, self._state_cache.next_expiry())
        left = min((at - now for at in known if at is not None and at > now), default=LONGEST_S)
        return min(max(left, SHORTEST_S), LONGEST_S)

    async def _guarded_pass(self) -> None:
        if self._observed.now.safe_mode.hold is not None:
            return  # no job starts until an administrator decides
        try:
            await self.make()
        except Unavailable as error:
            self._observed.report("pass", str(error))
            self.wanted.set()
            await asyncio.sleep(RETRY_S)
        except Exception as error:
            # A failed pass must not end the service: running jobs stay supervised.
            log.exception("a pass failed")
            self._observed.report("pass", f"The last pass failed ({error!r}); no job was started.")
            await asyncio.sleep(RETRY_S)
        else:
            self._observed.report("pass", None)

    async def make(self) -> None:
        """Run one pass. Errors: Unavailable, without any change."""
        begun = time.perf_counter()
        async with self._ledger.lock:
            await dependencies.settle(self._ledger, self._observed.settings.clock.now())
            if self._before is not None:
                await self._before()
            given = self._state_cache.take_input()
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._thread, self._decide, given)
            stopping = self._actions.stopping(found.work)
            await self._ledger.commit(*found.changes, as_written=stopping)
            self._actions.carry_out(found.work)
            self._remember(found.plan, begun)
            self._observed.report("core", found.problem)
        if preempted := [it for it in found.plan.commands if isinstance(it, Preempt)]:
            self.preempted.publish(preempted)
        self.made.publish(found.news)

    def _decide(self, given: PassInput) -> PassOutput:
        """Decide and collect the changes, in the pass thread and with the ledger's lock."""
        plan = self._state_cache.decide(given)
        judged = self._doubtful.judge(self._state_cache.facts(given.now), plan)
        plan = judged.plan
        returning = tuple(calling_back.called_back(self._ledger, given.seen, plan))
        if returning:
            plan = replace(plan, commands=(*plan.commands, *returning))
        work = UnitOfWork(self._ledger)
        apply(work, given.seen, plan, given.now)
        earlier = given.seen.latest_pass
        news, shifts = changed_reasons(earlier.reasons, plan.reasons)
        over, before = plan.over_quota, earlier.over_quota
        moved = (job for job in over.keys() | before.keys() if over.get(job) != before.get(job))
        news += [job for job in moved if job not in plan.reasons]
        return PassOutput(plan, judged.problem, work, work.changes(), PassNews(news, shifts))

    def _remember(self, plan: Plan, begun: float) -> None:
        """Publish the results of the pass."""
        self._wake = plan.wake_s
        quarantined = {job: it.text for job, it in self._state_cache.quarantined.items()}
        took_s = time.perf_counter() - begun
        before = self._observed.now.latest_pass
        latest = LatestPass(
            reasons=plan.reasons,
            shares={str(name): share for name, share in plan.shares.items()},
            over_quota=plan.over_quota,
            quarantined=quarantined,
            passes=before.passes + 1,
            last_pass_s=took_s,
            pass_s=before.pass_s + took_s,
        )
        self._observed.put(replace(self._observed.now, latest_pass=latest))
        self._observed.report("aside", " ".join(quarantined.values()) or None)


def changed_reasons(
    before: Mapping[JobId, WaitReason], now: Mapping[JobId, WaitReason]
) -> tuple[list[str], list[str]]:
    """Return the jobs with a new or different reason, and those where only the numbers differ.

    Jobs of one shape share a reason, so few reasons are compared however many jobs wait.
    """
    news: list[str] = []
    shifts: list[str] = []
    seen: dict[tuple[int, int], list[str] | None] = {}
    for job, reason in now.items():
        known = before.get(job)
        if known is reason:
            continue
        pair = (id(known), id(reason))
        if pair not in seen:
            alike = known is not None and known.code is reason.code
            seen[pair] = None if known == reason else shifts if alike else news
        found = seen[pair]
        if found is not None:
            found.append(job)
    return news, shifts


# --------------------------------------------------------------------------- applying a plan


def apply(work: UnitOfWork, seen: Observations, plan: Plan, now: float) -> None:
    """Apply a plan to the unit of work."""
    promised: set[JobId] = set()
    for command in plan.commands:
        match command:
            case Start(after=()):
                _start(work, command, seen, now)
            case Start(job=job, workers=workers):
                transitions.promise(work, job, snapshots.places_of(workers))
                promised.add(job)
            case Preempt():
                _preempt(work, seen.configuration, command, now)
    for job_id in tuple(work.ledger.counters.nominated):
        if job_id not in promised:
            transitions.promise(work, job_id, ())


def _start(work: UnitOfWork, command: Start, seen: Observations, now: float) -> None:
    places, job = snapshots.places_of(command.workers), work.job(command.job)
    if job.state is JobState.QUEUED:
        port = work.take_port(places[0].node)
        transitions.start(work, command.job, places, port, seen.default_amounts.of(job.spec), now)
    else:
        transitions.add_workers(work, command.job, places)


def _preempt(work: UnitOfWork, configuration: Configuration, command: Preempt, now: float) -> None:
    victim = work.job(command.job)
    attempt = work.attempt(victim)
    if victim.state not in HOLDS_GPUS or attempt is None:
        return
    stop_request = _intend(work, configuration, command, victim, now)
    gone = frozenset(str(gpu) for worker in command.workers for gpu in worker.gpus)
    staying = [w for w in attempt.live_workers if not w.leaving and not gone & set(w.gpus)]
    if staying:
        transitions.shrink(work, victim.id, gone, stop_request)
        return
    claimant = None if command.claimant is None else work.job(command.claimant)
    record = PreemptionRecord(
        job=victim.id,
        attempt=victim.attempt,
        at=now,
        claimant=command.claimant,
        for_=stop_request.for_,
        rule=command.rule,
        lost_gpu_s=command.lost_gpu_s,
        gpus=len(gone),
        needs=len(gone) if claimant is None else claimant.spec.total_gpus,
    )
    transitions.preempt(work, victim.id, stop_request, record)


def _intend(
    work: UnitOfWork,
    configuration: Configuration,
    command: Preempt,
    victim: JobRecord,
    now: float,
) -> StopIntent:
    grace_s = configuration.policy.grace_s
    gpus = sum(len(worker.gpus) for worker in command.workers)
    if command.claimant is None:
        lent = configuration.build.lend_idle
        return notices.preempted_for_benches(gpus, command.rule, grace_s, now, lent=lent)
    claimant = work.job(command.claimant)
    return notices.preempted_for_job(claimant, victim, gpus, command.rule, grace_s, now)
