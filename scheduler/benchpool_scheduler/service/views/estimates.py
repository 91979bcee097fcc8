"""When waiting jobs will start: forecasts beside the passes, never in their way (R22).

After passes that leave jobs waiting the core is run forward in a thread, seldom enough to take a
small part of a processor. Readers get the newest forecast at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from benchpool_scheduler import contract
from benchpool_scheduler.core.forecast.forecast import MOST_PASSES, Estimate, forecast, waits_for
from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_scheduler.core.lifecycle.states import Intent, JobState
from benchpool_scheduler.core.model import Activity, JobFacts, JobId, Snapshot
from benchpool_scheduler.service.cluster_state.state_cache import StateCache
from benchpool_scheduler.service.execution.passes import PassNews
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.store.records import JobRecord

log = logging.getLogger(__name__)

FIRST_S = 0.2
"""A burst of passes is one forecast."""
REST, LEAST_REST_S, MOST_REST_S = 20.0, 1.0, 600.0
"""After a forecast comes none for ``REST`` times its duration, within these bounds in seconds."""
BUDGET_S = 5.0
"""A forecast that took longer shares more ends in a pass the next time."""
LONGEST_S = 20.0
"""One that takes longer is broken off: what it knows by then is used."""
LEAST_PASSES = 16
QUICK_S = 0.05
"""A pool whose forecast takes no longer answers a preview with one."""
SAME_S, SAME_PART = 60.0, 0.1
"""An estimate that moved by less, or by a smaller part of itself, is no news."""


class Estimates:
    """Makes forecasts and answers when a job starts.

    Attributes:
        changed: News of the jobs whose estimates have changed noticeably.
        newest: The newest forecast by job; ``at``: the instant that it counts from.
        took_s: How long it took to make, in seconds.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: Observed,
        state_cache: StateCache,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._state_cache = state_cache
        self.changed: Topic[Collection[str]] = Topic()
        self._wanted = asyncio.Event()
        self._most_passes = MOST_PASSES
        self.newest: Mapping[str, Estimate] = {}
        self.at = 0.0
        self.took_s = 0.0

    # ------------------------------------------------------------------ making them

    def pass_made(self, news: PassNews) -> None:
        """Have a forecast made soon."""
        self._wanted.set()

    async def run(self) -> None:
        """Make forecasts when they are wanted, for ever."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(FIRST_S)
            self._wanted.clear()
            try:
                await self.make()
            except Exception:
                # Estimates are a convenience: the pool works without them.
                log.exception("a forecast failed; it is tried again with the next pass")
                self.newest = {}
            await self._rest()

    async def _rest(self) -> None:
        """Leave the processor to others: by its own clock, whatever the loop's time is."""
        until = time.perf_counter() + min(MOST_REST_S, REST * self.took_s)
        await asyncio.sleep(LEAST_REST_S)
        # In virtual time a sleep takes no time, so the processor is asked again.
        while (left := until - time.perf_counter()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(max(LEAST_REST_S, left))

    async def make(self) -> None:
        """Make one forecast of all that wait."""
        now = self._observed.settings.clock.now()
        found: Mapping[str, Estimate] = {}
        async with self._ledger.lock:
            await asyncio.to_thread(self._renew, now)
            pool = await self._state_cache.snapshot(now)
        if pool is not None and self._ledger.counters.states[JobState.QUEUED]:
            begun = time.perf_counter()
            found = await asyncio.to_thread(self._forecast, pool, now)
            self.took_s = time.perf_counter() - begun
            self._adapt(self.took_s)
        # They may be many: neither is counted on the loop.
        news = await asyncio.to_thread(_news, self.newest, self.at, found, now)
        self.newest, self.at = found, now
        if news:
            self.changed.publish(news)

    def _renew(self, now: float) -> None:
        """Let the next pass know of jobs that run longer than was expected (R14)."""
        ledger = self._ledger
        late = [
            job.id
            for job in ledger.live()
            if job.state is JobState.RUNNING
            and ledger.runtime_estimator.renew(job, ledger.attempts(job.id), now)
        ]
        if late:
            self._state_cache.touch(late)

    def _adapt(self, took_s: float) -> None:
        part = BUDGET_S / max(took_s, 1e-3)
        self._most_passes = int(min(MOST_PASSES, max(LEAST_PASSES, self._most_passes * part)))

    def _forecast(self, pool: Snapshot, now: float) -> dict[str, Estimate]:
        """Run in a thread: it reads records, which never change, and the learned run times."""
        live = self._ledger.live()
        until = time.perf_counter() + LONGEST_S
        found = forecast(
            pool,
            self._expected(live, now),
            most_passes=self._most_passes,
            resumes=[JobId(job.id) for job in live if _resumes(job)],
            go_on=lambda: time.perf_counter() < until,
        )
        return {str(job): estimate for job, estimate in found.items()}

    def _expected(self, live: Iterable[JobRecord], now: float) -> dict[JobId, Expectation]:
        ledger = self._ledger
        known = {
            JobId(job.id): ledger.runtime_estimator.expectation(job, ledger.attempts(job.id), now)
            for job in live
        }
        return {job: expectation for job, expectation in known.items() if expectation is not None}

    # ------------------------------------------------------------------ answering

    def of(self, job: JobRecord) -> contract.EstimatedStart | None:
        """Return when a waiting job will start, as far as the newest forecast knows."""
        estimate = self.newest.get(job.id)
        if estimate is None or job.state is not JobState.QUEUED:
            return None
        return on_the_clock(estimate, self.at, self._observed.settings.clock.now())

    def waits_for(self, job: JobRecord, sees: Callable[[str], bool]) -> str | None:
        """Return for whose end a waiting job waits, as a sentence; by id and project only.

        Args:
            sees: Tells whether the reader may see a job; one that it may not is not named.
        """
        estimate = self.newest.get(job.id)
        if estimate is None or estimate.waits_for is None or job.state is not JobState.QUEUED:
            return None
        other = self._ledger.job(estimate.waits_for)
        if other is None or not other.live:
            return None
        passed = self._observed.settings.clock.now() - self.at
        return waits_for(estimate, other.project if sees(other.id) else None, passed)

    @property
    def quick(self) -> bool:
        """Whether a forecast takes so little that a preview may have one."""
        return self.took_s <= QUICK_S

    def preview(self, pool: Snapshot, job: JobFacts, record: JobRecord) -> Estimate | None:
        """Return when a job would start that is not submitted yet."""
        expected = self._expected(self._ledger.live(), pool.now_s)
        found = self._ledger.runtime_estimator.expectation(record, (), None)
        if found is not None:
            expected[job.id] = found
        queued = replace(job, activity=Activity.QUEUED)
        with_it = replace(pool, jobs=(*pool.jobs, queued))
        return forecast(with_it, expected, [job.id], most_passes=LEAST_PASSES).get(job.id)


def _resumes(job: JobRecord) -> bool:
    return job.wish is not None and job.wish.kind is Intent.PREEMPT


def _news(
    before: Mapping[str, Estimate], since: float, after: Mapping[str, Estimate], now: float
) -> list[str]:
    """Return the jobs whose estimates have changed noticeably."""
    return [job for job in {**before, **after} if _differ(before, since, after, now, job)]


def _differ(
    before: Mapping[str, Estimate],
    since: float,
    after: Mapping[str, Estimate],
    now: float,
    job: str,
) -> bool:
    """Tell whether readers should hear of a job's new estimate."""
    old, new = before.get(job), after.get(job)
    if old is None or new is None:
        return old is not new
    return any(
        _moved(was, since, bound, now)
        for was, bound in (
            (old.earliest_s, new.earliest_s),
            (old.likely_s, new.likely_s),
            (old.latest_s, new.latest_s),
        )
    )


def _moved(was: float | None, since: float, bound: float | None, now: float) -> bool:
    if was is None or bound is None:
        return was is not bound
    return abs((now + bound) - (since + was)) > max(SAME_S, SAME_PART * bound)


def on_the_clock(estimate: Estimate, at: float, now: float) -> contract.EstimatedStart:
    """Return an estimate that counts from ``at`` as times; what should be over is now."""
    bounds = (estimate.earliest_s, estimate.likely_s, estimate.latest_s)
    times = [
        None if bound is None else datetime.fromtimestamp(max(now, at + bound), UTC)
        for bound in bounds
    ]
    return contract.EstimatedStart(*times)
