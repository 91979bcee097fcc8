"""Subscriptions of the pool's parts to the events of other parts."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from benchpool_scheduler.curves.points import Reported
from benchpool_scheduler.curves.series import MetricReport
from benchpool_scheduler.runtime import WorkerMetrics
from benchpool_scheduler.service.administration.bench_trail import BenchTrail
from benchpool_scheduler.service.administration.preemption_trail import PreemptionTrail
from benchpool_scheduler.service.pool.job_history_loader import JobHistoryLoader

if TYPE_CHECKING:
    from benchpool_scheduler.service.pool.pool import Pool


def as_report(metrics: WorkerMetrics) -> MetricReport:
    """Convert a worker's report for the curves."""
    values = ((it.name, Reported(it.value, it.at, it.step)) for it in metrics.values)
    return MetricReport(metrics.worker.attempt, tuple(values))


def _ended(pool: Pool, jobs: Collection[str]) -> list[str]:
    return [job for job in jobs if (record := pool.ledger.job(job)) and not record.live]


def subscribe(pool: Pool, older: JobHistoryLoader) -> None:
    """Subscribe all parts, in this order."""
    for changed in (
        pool.state_cache.touch,
        pool.inbound.see,
        pool.counters.jobs_changed,
        pool.files.jobs_changed,
        pool.estimates.jobs_changed,
        pool.feed_writer.jobs_changed,
        pool.deliveries.jobs_changed,
        pool.sweeps.runner.see,
        pool.services.runner.see,
        pool.admitted.see,
    ):
        pool.ledger.jobs_changed.subscribe(changed)
    pool.ledger.job_dropped.subscribe(pool.feed_writer.job_dropped)
    pool.ledger.job_dropped.subscribe(pool.curves.dropped)
    pool.ledger.jobs_changed.subscribe(lambda jobs: pool.curves.ended(_ended(pool, jobs)))
    pool.watcher.reported.subscribe(
        lambda metrics: pool.curves.take(metrics.worker.job, as_report(metrics), metrics.at)
    )
    pool.curves.changed.subscribe(pool.feed_writer.publish)
    pool.curves.changed.subscribe(pool.sweeps.runner.see)
    pool.ledger.gpus_moved.subscribe(pool.views.gpu_states.moved)
    pool.observed.replaced.subscribe(pool.views.gpu_states.see)
    pool.observed.replaced.subscribe(pool.deliveries.seen)
    pool.deliveries.quiet = pool.services.book.is_repeated
    pool.use.subscribe(pool.ledger, pool.observed, pool.passes)
    pool.metering.workers_seen.subscribe(pool.inside.hangs.measured)
    pool.watcher.reported.subscribe(pool.inside.hangs.reported)
    pool.metering.seen.subscribe(pool.idle.watcher.measured)
    pool.idle.giver.given.subscribe(BenchTrail(pool.audit).given)
    pool.ledger.lease_taken.subscribe(pool.gates.taken)
    pool.ledger.lease_returned.subscribe(pool.gates.returned)
    for made in (
        pool.feed_writer.pass_made,
        pool.announcer.pass_made,
        pool.auditor.pass_made,
        pool.estimates.pass_made,
    ):
        pool.passes.made.subscribe(made)
    pool.passes.preempted.subscribe(PreemptionTrail(pool.ledger, pool.audit).preempted)
    pool.passes.made.subscribe(older.pass_made)
    pool.estimates.changed.subscribe(pool.feed_writer.publish)
    pool.benches.changed.subscribe(pool.feed_writer.bench_asked)
