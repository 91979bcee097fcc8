"""Start estimates of waiting jobs: forecasts that run beside the passes (R22).

After passes that leave jobs waiting, the core is run forward in a thread, seldom enough to use a
small part of a processor. Readers get the newest forecast at once: a range and its basis. Four in
five starts lie within the range, according to the outcomes of earlier forecasts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from benchpool_scheduler import contract
from benchpool_scheduler.core.cluster.budgets_in_time import HourOutlook
from benchpool_scheduler.core.forecast.calibration import (
    INSIDE,
    Calibration,
    CalibrationCell,
    FollowedEstimates,
    Prediction,
)
from benchpool_scheduler.core.forecast.forecast import (
    MOST_PASSES,
    Estimate,
    estimate_basis,
    forecast,
    waits_for,
)
from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_scheduler.core.lifecycle.states import HOLDS_GPUS, Intent, JobState
from benchpool_scheduler.core.model import Activity, JobFacts, JobId, Snapshot
from benchpool_scheduler.service.cluster_state.state_cache import StateCache
from benchpool_scheduler.service.execution.passes import PassNews
from benchpool_scheduler.service.ledger.hours_used import HoursUsed
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.views.forecast_chains import ForecastChain, chain_of
from benchpool_scheduler.store.records import CalibrationRecord, JobRecord, SaveCalibration

log = logging.getLogger(__name__)

FIRST_S = 0.2
"""Delay before a forecast, which combines a burst of passes, in seconds."""
REST, LEAST_REST_S, MOST_REST_S = 20.0, 1.0, 600.0
"""Pause after a forecast: ``REST`` times its duration, within these bounds in seconds."""
BUDGET_S = 5.0
"""Duration in seconds beyond which the next forecast combines more job ends in a pass."""
LONGEST_S = 20.0
"""Timeout of a forecast, in seconds. The results found by then are used."""
LEAST_PASSES = 16
QUICK_S = 0.05
"""Maximum duration of a forecast, in seconds, at which previews include one."""
SAME_S, SAME_PART = 60.0, 0.1
"""Smallest change of an estimate that is published: seconds, and part of the estimate."""
RENEWAL_S = 60.0
"""Interval of forecasts while jobs wait and nothing happens, in seconds."""
SAVE_S = 300.0
"""Interval at which the calibration is saved, in seconds."""


class PublishedEstimate(NamedTuple):
    """An estimate with its published range."""

    estimate: Estimate
    prediction: Prediction


class Estimates:
    """Runs forecasts and returns estimated starts of jobs.

    Attributes:
        changed: Publishes the jobs whose estimates have changed noticeably.
        newest: The published estimate of each job. ``at``: the instant from which they count.
        calibration: Accuracy of earlier estimates.
        took_s: Duration of the newest forecast, in seconds.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        state_cache: StateCache,
        hours: HoursUsed,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._state_cache = state_cache
        self._hours = hours
        self._outlook: HourOutlook | None = None
        self.changed: Topic[Collection[str]] = Topic()
        self._wanted = asyncio.Event()
        self._most_passes = MOST_PASSES
        self.newest: Mapping[str, PublishedEstimate] = {}
        self.calibration = Calibration()
        self._followed = FollowedEstimates(self.calibration)
        self.at = 0.0
        self._saved_at = time.perf_counter()
        self.took_s = 0.0

    # ------------------------------------------------------------------ forecasts

    def pass_made(self, news: PassNews) -> None:
        """Request a forecast soon."""
        self._wanted.set()

    async def run(self) -> None:
        """Run requested forecasts until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RENEWAL_S if self._waiting else None):
                    await self._wanted.wait()
            await asyncio.sleep(FIRST_S)
            self._wanted.clear()
            try:
                await self.make()
                await self._save_now_and_then()
            except Exception:
                # The pool works without estimates.
                log.exception("a forecast failed; the next pass retries it")
                self.newest = {}
            await self._rest()

    async def _rest(self) -> None:
        """Pause between forecasts, measured in real time even if the loop's time is virtual."""
        until = time.perf_counter() + min(MOST_REST_S, REST * self.took_s)
        await asyncio.sleep(LEAST_REST_S)
        # In virtual time a sleep takes no time, so the real time is checked again.
        while (left := until - time.perf_counter()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(max(LEAST_REST_S, left))

    async def make(self) -> None:
        """Run one forecast for all waiting jobs."""
        now = self._observed.settings.clock.now()
        found: Mapping[str, PublishedEstimate] = {}
        async with self._ledger.lock:
            await asyncio.to_thread(self._renew, now)
            pool = await self._state_cache.snapshot(now)
        if pool is not None and self._waiting:
            begun = time.perf_counter()
            self._outlook = self._hours.outlook(self._observed.now.configuration)
            chain = chain_of(self._ledger, self._observed.now, pool, now)
            found = await asyncio.to_thread(self._forecast, pool, now, chain)
            self.took_s = time.perf_counter() - begun
            self._adapt(self.took_s)
        if now < self.at:
            return  # a later forecast has finished already
        # They may be many, so the comparison does not run on the loop.
        news = await asyncio.to_thread(_news, self.newest, self.at, found, now)
        self.newest, self.at = found, now
        for job, published in found.items():
            # Jobs that started during the forecast got no estimate from it.
            record = self._ledger.job(job)
            # Estimates of gated jobs are a poor measure of the queue.
            if record is not None and record.state is JobState.QUEUED and not record.gated:
                self._followed.follow(job, published.prediction)
        if news:
            self.changed.publish(news)

    @property
    def _waiting(self) -> bool:
        return self._ledger.counters.in_queue() > 0 or bool(self._ledger.counters.gated)

    def _renew(self, now: float) -> None:
        """Pass jobs that run longer than expected to the next pass (R14)."""
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

    def _forecast(
        self, pool: Snapshot, now: float, chain: ForecastChain
    ) -> dict[str, PublishedEstimate]:
        """Return a forecast; runs in a thread on immutable records and the learned run times."""
        live = self._ledger.live()
        until = time.perf_counter() + LONGEST_S
        found = forecast(
            pool,
            {**self._expected(live, now), **chain.expected},
            most_passes=self._most_passes,
            resumes=[JobId(job.id) for job in live if _resumes(job)],
            should_continue=lambda: time.perf_counter() < until,
            hours=self._outlook,
            dependents=chain.dependents,
        )
        ranges = {job: self.calibration.range_of(it, now) for job, it in found.items()}
        return {
            str(job): PublishedEstimate(it, prediction)
            for job, it in found.items()
            if (prediction := ranges[job]) is not None
        }

    def _expected(self, live: Iterable[JobRecord], now: float) -> dict[JobId, Expectation]:
        ledger = self._ledger
        known = {
            JobId(job.id): ledger.runtime_estimator.expectation(job, ledger.attempts(job.id), now)
            for job in live
        }
        return {job: expectation for job, expectation in known.items() if expectation is not None}

    # ------------------------------------------------------------------ learning

    def restore(self) -> None:
        """Load the calibration of earlier runs of the service."""
        self.calibration.restore(
            CalibrationCell(it.kind, it.horizon, it.low, it.high, it.outcomes)
            for it in self._ledger.saved_calibration
        )

    async def _save_now_and_then(self) -> None:
        now = time.perf_counter()
        if now - self._saved_at > SAVE_S:
            self._saved_at = now
            await self.save()

    async def save(self) -> None:
        """Save the calibration for the next start, if it has changed."""
        known = tuple(CalibrationRecord(*it) for it in self.calibration.summary())
        if known != self._ledger.saved_calibration:
            await self._ledger.commit(SaveCalibration(known))

    def jobs_changed(self, jobs: Collection[str]) -> None:
        """Compare the estimates of these jobs with their actual starts."""
        now = self._observed.settings.clock.now()
        for job in filter(None, map(self._ledger.job, jobs)):
            if job.state in HOLDS_GPUS:
                self._followed.started(job.id, now)
            elif job.state is not JobState.QUEUED:
                self._followed.gone(job.id, now)

    # ------------------------------------------------------------------ reading

    def of(self, job: JobRecord) -> contract.EstimatedStart | None:
        """Return the estimated start of a waiting job, or None if unknown or over."""
        published = self.newest.get(job.id)
        if published is None or job.state is not JobState.QUEUED:
            return None
        return self._on_the_clock(published, job, self._observed.settings.clock.now(), yours=False)

    def _on_the_clock(
        self, published: PublishedEstimate, job: JobRecord, now: float, *, yours: bool
    ) -> contract.EstimatedStart | None:
        """Return an estimate as times from now on, or None if its range is over."""
        (estimate, prediction), likely = published, published.estimate.likely_s or 0.0
        earliest, latest = (
            prediction.at_s + prediction.earliest_s,
            prediction.at_s + prediction.latest_s,
        )
        if now > latest:
            return None
        middle = min(latest, max(earliest, prediction.at_s + likely))
        return contract.EstimatedStart(
            earliest=moment(max(now, earliest)),
            likely=moment(max(now, middle)),
            latest=moment(latest),
            basis=self._basis(estimate, job, yours=yours),
        )

    def _basis(self, estimate: Estimate, job: JobRecord, *, yours: bool) -> str | None:
        if estimate.basis is None:
            return None
        kind, level, examples = estimate.basis
        other = None if estimate.waits_for is None else self._ledger.job(estimate.waits_for)
        return estimate_basis(
            kind.value,
            level,
            examples,
            same_user=other is not None and other.user == job.user,
            same_project=other is not None and other.project == job.project,
            yours=yours,
        )

    def waits_for(self, job: JobRecord, sees: Callable[[str], bool]) -> str | None:
        """Return a sentence about the job whose end a waiting job waits for, or None.

        Args:
            sees: Returns whether the reader may see a job. Otherwise its project is not named.
        """
        published = self.newest.get(job.id)
        if (
            published is None
            or published.estimate.waits_for is None
            or job.state is not JobState.QUEUED
        ):
            return None
        other = self._ledger.job(published.estimate.waits_for)
        if other is None or not other.live:
            return None
        return waits_for(published.estimate, other.project if sees(other.id) else None)

    def accuracy(self) -> contract.StartEstimates:
        """Return the accuracy of start estimates in this pool."""
        return contract.StartEstimates(
            wanted=INSIDE,
            horizons=[
                contract.EstimateHorizon(
                    up_to_s=None if math.isinf(it.up_to_s) else it.up_to_s,
                    starts=it.starts,
                    inside=it.inside,
                    before=it.before,
                    after=it.after,
                )
                for it in self.calibration.rows()
            ],
        )

    @property
    def quick(self) -> bool:
        """Whether a forecast is fast enough for previews."""
        return self.took_s <= QUICK_S

    def preview(
        self, pool: Snapshot, job: JobFacts, record: JobRecord
    ) -> contract.EstimatedStart | None:
        """Return the estimated start of a job that is not submitted yet, worded for its user."""
        expected = self._expected(self._ledger.live(), pool.now_s)
        known = self._ledger.runtime_estimator.expectation(record, (), None)
        if known is not None:
            expected[job.id] = known
        queued = replace(job, activity=Activity.QUEUED)
        more = (queued, record) if record.gated else None
        chain = chain_of(self._ledger, self._observed.now, pool, pool.now_s, more)
        if more is None:
            pool = replace(pool, jobs=(*pool.jobs, queued))
        starts = forecast(
            pool,
            {**expected, **chain.expected},
            [job.id],
            most_passes=LEAST_PASSES,
            hours=self._outlook,
            dependents=chain.dependents,
        )
        found = starts.get(job.id)
        prediction = None if found is None else self.calibration.range_of(found, pool.now_s)
        if found is None or prediction is None:
            return None
        return self._on_the_clock(
            PublishedEstimate(found, prediction), record, pool.now_s, yours=True
        )


def _resumes(job: JobRecord) -> bool:
    return job.stop_request is not None and job.stop_request.kind is Intent.PREEMPT


def _news(
    before: Mapping[str, PublishedEstimate],
    since: float,
    after: Mapping[str, PublishedEstimate],
    now: float,
) -> list[str]:
    """Return the jobs whose estimates have changed noticeably."""
    return [job for job in {**before, **after} if _differ(before, since, after, now, job)]


def _differ(
    before: Mapping[str, PublishedEstimate],
    since: float,
    after: Mapping[str, PublishedEstimate],
    now: float,
    job: str,
) -> bool:
    """Return whether a job's estimate has changed enough to be published."""
    old, new = before.get(job), after.get(job)
    if old is None or new is None:
        return old is not new
    return any(
        _moved(was, since, bound, now)
        for was, bound in (
            (old.prediction.earliest_s, new.prediction.earliest_s),
            (old.prediction.latest_s, new.prediction.latest_s),
        )
    )


def _moved(was: float, since: float, bound: float, now: float) -> bool:
    return abs((now + bound) - (since + was)) > max(SAME_S, SAME_PART * bound)
