"""Wait reasons are true: they are computed a second time, and their advice is applied (R22)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.model import Activity, JobFacts, ReasonCode, Snapshot, WaitReason
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.written import as_case
from benchpool_support.examples import examples
from benchpool_support.plans import at_rest, preempts, starts
from benchpool_support.reference.holdings import (
    GPUS,
    booked,
    bounds,
    changed,
    held,
    job_named,
    named,
    need,
    over_bounds,
    times,
)
from benchpool_support.reference.places import (
    Space,
    possible,
    room_for,
    spaces,
    startable,
)
from benchpool_support.reference.shares import fair_shares
from benchpool_support.snapshots import busy_snapshots
from benchpool_support.wide_snapshots import PLAIN, Breadth, wide_snapshots

quiet = Breadth(leaving=False, past=False)
gpus_only = replace(quiet, resources=False)


def unmoved(pool: Snapshot) -> Snapshot:
    """Return the pool with unmovable work, so that free GPUs stay where they are."""
    return replace(pool, jobs=tuple(replace(job, checkpoints=False) for job in pool.jobs))


scattered = wide_snapshots(PLAIN, nodes=5, running=10, waiting=4).map(unmoved)
pools = st.one_of(
    scattered, wide_snapshots(quiet, running=10, waiting=6), busy_snapshots(elastic=True)
)
many = settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
NEVER = {ReasonCode.LARGER_THAN_NODE, ReasonCode.LARGER_THAN_POOL, ReasonCode.NO_SUCH_MODEL}
OF_THE_ROOM = {
    ReasonCode.POOL_FULL,
    ReasonCode.FAIR_SHARE_REACHED,
    ReasonCode.GANG_INCOMPLETE,
    ReasonCode.FRAGMENTED,
    ReasonCode.VICTIMS_PROTECTED,
}
RESOURCES = ["GPUs", "CPUs", "memory"]


def waiting_reasons(pool: Snapshot) -> Iterator[tuple[JobFacts, WaitReason]]:
    """Yield every waiting job of a settled pool with its reason."""
    plan = decide(pool)
    if not plan.commands:
        note(as_case(pool))
        for name, reason in plan.reasons.items():
            yield job_named(pool, name), reason


def usable(pool: Snapshot, job: JobFacts) -> list[Space]:
    """Return the free space of the nodes whose model the job accepts."""
    return [
        s
        for s in spaces(pool)
        if not job.spec.gpu_models or s.node.gpu_model in job.spec.gpu_models
    ]


def all_ready(pool: Snapshot) -> Snapshot:
    return replace(pool, nodes=tuple(replace(node, ready=True) for node in pool.nodes))


@many
@given(pools)
def test_named_limit_or_guarantee_is_binding(
    pool: Snapshot,
) -> None:
    """R8: the lowest binding level, the amount it holds, and that the job would exceed it."""
    pool = at_rest(pool)
    kinds = {
        ReasonCode.PROJECT_LIMIT: "limit",
        ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA: "quota",
    }
    for job, reason in waiting_reasons(pool):
        over = over_bounds(pool, job, job.spec.least_workers)
        if reason.code not in kinds:
            if reason.code not in NEVER | {ReasonCode.NO_NODE_READY}:
                assert over == []
            continue
        kind = kinds[reason.code]
        resource = RESOURCES.index(str(reason.numbers["resource"]))
        level = str(reason.numbers["level"])
        assert (kind, level, resource) in over
        if possible(all_ready(pool), job):
            assert (kind, level, resource) == over[0]
        now = booked(pool, firm=kind == "quota")[named(pool, level).name][resource]
        asked = times(need(job), job.spec.least_workers)[resource]
        bound = bounds(named(pool, level), kind)[resource]
        assert bound is not None
        assert now + asked > bound
        assert reason.numbers["held"] == now
        assert reason.numbers["asked"] == asked
        assert reason.numbers[kind] == bound


@many
@given(pools)
def test_only_impossible_jobs_are_reported_as_impossible(pool: Snapshot) -> None:
    pool = at_rest(pool)
    for job, reason in waiting_reasons(pool):
        if reason.code in NEVER:
            assert not possible(all_ready(pool), job)
        elif reason.code is ReasonCode.NO_NODE_READY:
            assert not possible(pool, job)
            assert possible(all_ready(pool), job)
        elif reason.code in OF_THE_ROOM:
            assert possible(pool, job)


@many
@given(pools)
def test_reason_numbers_match_pool(pool: Snapshot) -> None:
    """Free, total, held, quota and fair share are counted again."""
    pool = at_rest(pool)
    total = sum(max(0, len(n.gpus) - n.kept) for n in pool.nodes if n.ready)
    now, due = held(pool), fair_shares(pool)
    for job, reason in waiting_reasons(pool):
        if reason.code not in OF_THE_ROOM:
            continue
        numbers = reason.numbers
        by_level = reason.code is ReasonCode.FAIR_SHARE_REACHED
        if by_level and numbers["resource"] != "GPUs":
            continue
        project = named(pool, str(numbers["level" if by_level else "project"]))
        assert numbers["asked"] == times(need(job), job.spec.least_workers)[GPUS]
        assert numbers["total"] == total
        assert numbers["held"] == now[project.name][GPUS]
        assert numbers["quota"] == due.guaranteed[project.name][GPUS]
        assert numbers["fair_share"] == due.of[project.name][GPUS]
        if job.spec.required_level is None:
            assert numbers["free"] == sum(space.gpus for space in usable(pool, job))


@many
@given(pools)
def test_fragmentation_reason_matches_free_capacity(pool: Snapshot) -> None:
    """Enough GPUs are free, but on too many nodes, for some of the workers, or without CPUs."""
    pool = at_rest(pool)
    for job, reason in waiting_reasons(pool):
        if reason.code not in OF_THE_ROOM:
            continue
        assert not startable(pool, job, job.spec.least_workers)
        free = [space.gpus for space in usable(pool, job)]
        asked = times(need(job), job.spec.least_workers)[GPUS]
        if reason.code is ReasonCode.FRAGMENTED and job.spec.required_level is None:
            assert reason.numbers["most_on_one_node"] == max(free)
            assert max(free) < job.spec.gpus <= asked <= sum(free)
        if reason.code is ReasonCode.GANG_INCOMPLETE:
            assert sum(free) >= asked
            assert reason.numbers["workers"] == job.spec.least_workers > 1
            if job.spec.required_level is None:
                assert 0 < room_for(pool, job) == reason.numbers["workers_that_fit"]
        if "on the node of its GPUs" in reason.text:
            assert job.spec.cpus or job.spec.memory_gib
            assert any(gpus >= job.spec.gpus for gpus in free)


@many
@given(st.one_of(wide_snapshots(gpus_only, running=10, waiting=6), busy_snapshots(elastic=True)))
def test_named_share_would_be_exceeded(pool: Snapshot) -> None:
    """R15: with the job, the named project would exceed both its share and its quota of GPUs."""
    pool = at_rest(pool)
    due, now = fair_shares(pool), held(pool)
    for job, reason in waiting_reasons(pool):
        if reason.code is ReasonCode.FAIR_SHARE_REACHED:
            level = named(pool, str(reason.numbers["level"]))
            after = now[level.name][GPUS] + times(need(job), job.spec.least_workers)[GPUS]
            assert after > due.of[level.name][GPUS]
            assert (quota := due.guaranteed[level.name][GPUS]) is not None
            assert after > quota


@many
@given(pools)
def test_advice_holds_when_followed(pool: Snapshot) -> None:
    """A smaller job starts immediately, or becomes possible, as the remedy promises."""
    pool = at_rest(pool)
    for job, reason in waiting_reasons(pool):
        if (smaller := reason.numbers.get("would_start_with")) is not None:
            follows = changed(pool, replace(job, spec=job.spec.changed(gpus=int(smaller))))
            assert job.id in starts(decide(follows))
            larger = changed(pool, replace(job, spec=job.spec.changed(gpus=int(smaller) + 1)))
            assert not startable(larger, job_named(larger, job.id), job.spec.least_workers)
        if reason.code is ReasonCode.LARGER_THAN_NODE and (
            most := re.search(r"at most (\d+) GPU", reason.remedy)
        ):
            fits = replace(job, spec=job.spec.changed(gpus=int(most[1])))
            assert possible(all_ready(pool), fits)
            assert not possible(
                all_ready(pool), replace(fits, spec=fits.spec.changed(gpus=fits.spec.gpus + 1))
            )
        if reason.code is ReasonCode.LARGER_THAN_POOL and (
            most := re.search(r"at most (\d+) worker", reason.remedy)
        ):
            workers = int(most[1])
            fewer = replace(job, spec=job.spec.changed(workers=workers, min_workers=workers))
            assert workers == 0 or possible(all_ready(pool), fewer)
            assert not possible(
                all_ready(pool),
                replace(
                    fewer, spec=fewer.spec.changed(workers=workers + 1, min_workers=workers + 1)
                ),
            )


@many
@given(st.one_of(wide_snapshots(quiet, running=12, waiting=2), busy_snapshots(elastic=True)))
def test_protection_reason_vanishes_without_protection(pool: Snapshot) -> None:
    """R19."""
    pool = at_rest(pool)
    for _, reason in waiting_reasons(pool):
        if reason.code is ReasonCode.VICTIMS_PROTECTED:
            assert any(job.activity is Activity.RUNNING for job in pool.jobs)
            jobs = tuple(
                replace(job, preemptions_last_hour=0, preemptions_last_day=0) for job in pool.jobs
            )
            projects = tuple(replace(project, min_runtime_s=0.0) for project in pool.projects)
            policy = replace(pool.policy, min_runtime_s=0.0)
            assert preempts(decide(replace(pool, jobs=jobs, projects=projects, policy=policy)))
