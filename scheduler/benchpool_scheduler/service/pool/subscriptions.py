"""Which part of the pool hears of which other part's news."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchpool_scheduler.service.administration.preemption_trail import PreemptionTrail
from benchpool_scheduler.service.pool.older_jobs import OlderJobs

if TYPE_CHECKING:
    from benchpool_scheduler.service.pool.pool import Pool


def subscribe(pool: Pool, older: OlderJobs) -> None:
    """Let the parts hear of each other's news, in this order."""
    for changed in (
        pool.state_cache.touch,
        pool.inbound.see,
        pool.counters.jobs_changed,
        pool.files.jobs_changed,
        pool.estimates.jobs_changed,
        pool.feed_writer.jobs_changed,
        pool.deliveries.jobs_changed,
    ):
        pool.ledger.jobs_changed.subscribe(changed)
    pool.ledger.job_dropped.subscribe(pool.feed_writer.job_dropped)
    pool.ledger.gpus_moved.subscribe(pool.views.gpu_states.moved)
    pool.observed.replaced.subscribe(pool.views.gpu_states.see)
    pool.observed.replaced.subscribe(pool.deliveries.seen)
    pool.use.subscribe(pool.ledger, pool.observed, pool.passes)
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
    pool.estimates.changed.subscribe(pool.feed_writer.tell)
    pool.benches.changed.subscribe(pool.feed_writer.bench_asked)
