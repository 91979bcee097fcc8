"""Preemptions of a job per day are limited (R19)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings

from benchpool_scheduler.core.model import Snapshot
from benchpool_scheduler.core.plan import decide
from benchpool_support.examples import examples
from benchpool_support.snapshots import busy_snapshots

NEVER = 10**6


@settings(max_examples=examples(120), suppress_health_check=list(HealthCheck))
@given(busy_snapshots(elastic=True))
def test_daily_preemption_limit_protects_like_hourly_limit(pool: Snapshot) -> None:
    bound = pool.policy.preemptions_per_hour
    by_hour = replace(pool, policy=replace(pool.policy, preemptions_per_day=NEVER))
    by_day = replace(
        pool,
        jobs=tuple(
            replace(job, preemptions_last_hour=0, preemptions_last_day=job.preemptions_last_hour)
            for job in pool.jobs
        ),
        policy=replace(pool.policy, preemptions_per_hour=NEVER, preemptions_per_day=bound),
    )
    assert decide(by_day) == decide(by_hour)
