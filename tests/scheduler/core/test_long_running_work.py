"""Long-running work above quota is preempted for younger work (R5, R15, R18, R19).

The rules are shown as data in ``cases/own-long-running.yaml``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.effects import after
from benchpool_scheduler.core.fairness.shares import Demand, divide
from benchpool_scheduler.core.model import (
    Activity,
    JobId,
    Policy,
    Preempt,
    ProjectName,
    Snapshot,
    Start,
)
from benchpool_scheduler.core.plan import decide, decide_on
from benchpool_support.boxes import box, leaving, project, queued, running
from benchpool_support.snapshots import busy_snapshots

LONG_S = Policy().long_run_s
DELAY_S = Policy().claim_delay_s


def above_quota(now_s: float, waits_s: float = DELAY_S) -> Snapshot:
    """Return a pool in which susan's job becomes long-running at 0 while her younger job waits."""
    jobs = [
        running("long", "susan", 2, ran_s=LONG_S - 1),
        replace(queued("young", "susan"), waits_s=waits_s),
    ]
    return replace(box(2, [project("susan", 1)], jobs), now_s=now_s)


def test_job_becomes_long_running_at_planned_time() -> None:
    state = ClusterState.of(above_quota(0))
    plan = decide_on(state, 0)
    assert (plan.commands, plan.wake_s) == ((), 1)
    assert decide_on(state, 0.9).commands == ()
    assert [type(command) for command in decide_on(state, 1).commands] == [Preempt, Start]


def test_over_quota_claim_has_delay_end() -> None:
    pool = above_quota(1, waits_s=0)
    plan = decide(pool)
    assert (plan.commands, plan.wake_s) == ((), DELAY_S)
    assert plan.reasons[JobId("young")].numbers["delayed_for_s"] == DELAY_S - 1
    assert decide(replace(pool, now_s=DELAY_S)).commands


def test_earlier_attempts_count_for_resumed_long_running_job() -> None:
    pool = above_quota(0)
    resumed = replace(pool.jobs[0], ran_s=5.0, done_s=LONG_S)
    plan = decide(replace(pool, jobs=(resumed, pool.jobs[1])))
    assert [command.job for command in plan.commands] == ["long", "young"]


def test_paused_long_running_job_waits_behind_younger_jobs() -> None:
    older = replace(queued("long", "susan"), done_s=LONG_S)
    plan = decide(box(1, [project("susan", 0)], [older, queued("young", "susan")]))
    assert [command.job for command in plan.commands] == ["young"]


def test_paused_long_running_job_reclaims_quota_immediately() -> None:
    older = replace(queued("long", "susan"), done_s=LONG_S)
    jobs = [running("other", "joe", 2), older]
    plan = decide(box(2, [project("susan", 1), project("joe", 1)], jobs))
    assert [command.job for command in plan.commands] == ["other", "long"]


def test_leaving_job_becomes_long_running_by_time() -> None:
    going = replace(leaving("going", "joe", 2), ran_s=LONG_S - 1)
    jobs = [running("hers", "susan", 3), going, queued("his", "joe")]
    pool = box(5, [project("joe", 2), project("susan", 2)], jobs)
    aged = replace(going, ran_s=LONG_S, as_of_s=1.0)
    later = replace(pool, now_s=1.0, jobs=(jobs[0], aged, jobs[2]))
    assert decide(replace(pool, now_s=1.0)).shares == decide(later).shares
    assert decide(later).shares[ProjectName("susan")].fair_share == 3


def test_long_running_work_counts_first_as_over_quota() -> None:
    jobs = [running("long", "susan", 2, ran_s=LONG_S), running("young", "susan", 2)]
    assert decide(box(4, [project("susan", 2)], jobs)).over_quota.keys() == {"long"}


# --------------------------------------------------------------------------- properties

siblings = st.lists(
    st.builds(
        Demand,
        quota=st.integers(0, 8),
        limit=st.none() | st.integers(0, 12),
        weight=st.integers(0, 3).map(float),
        priority=st.integers(0, 1),
        demand=st.integers(0, 12),
        young=st.none() | st.integers(0, 12),
    ),
    min_size=1,
    max_size=5,
)


def ageless(sibling: Demand) -> Demand:
    return replace(sibling, young=None)


@given(st.integers(0, 30), siblings)
def test_job_age_moves_surplus_and_keeps_total(total: int, some: list[Demand]) -> None:
    shares, rest = divide(total, some)
    plain, plain_rest = divide(total, [ageless(sibling) for sibling in some])
    assert (sum(shares), rest) == (sum(plain), plain_rest)
    for sibling, share in zip(some, shares, strict=True):
        assert min(sibling.quota or 0, sibling.most) <= share <= sibling.most


@given(st.integers(0, 30), siblings, st.integers(0, 4))
def test_more_young_work_never_lowers_share(total: int, some: list[Demand], which: int) -> None:
    index = which % len(some)
    sibling = some[index]
    younger = replace(sibling, young=min(sibling.demand, (sibling.young or 0) + 1))
    if sibling.young is None:
        return
    before = divide(total, some)[0][index]
    after_that = divide(total, [*some[:index], younger, *some[index + 1 :]])[0][index]
    assert after_that >= before


@settings(deadline=None)
@given(busy_snapshots(), st.integers(0, 9), st.lists(st.integers(0, 12_000), max_size=14))
def test_aged_cluster_state_decides_like_rebuilt_state(
    pool: Snapshot, steps: int, ran: list[int]
) -> None:
    """Jobs that become long-running in the updated state equal those of a later snapshot."""
    aged = tuple(
        replace(job, ran_s=float(seconds)) if job.held else job
        for job, seconds in zip(pool.jobs, [*ran, *[0] * len(pool.jobs)], strict=False)
    )
    pool = replace(pool, jobs=aged)
    state = ClusterState.of(pool)
    for now_s in (0.0, steps * 800.0, steps * 1600.0):
        kept = decide_on(state, now_s)
        fresh = decide(replace(pool, now_s=now_s))
        assert (kept.commands, kept.shares, kept.over_quota) == (
            (fresh.commands, fresh.shares, fresh.over_quota)
        )


@settings(deadline=None)
@given(
    busy_snapshots(),
    st.lists(st.tuples(st.integers(0, 12_000), st.booleans()), min_size=1, max_size=14),
    st.integers(0, 12_000),
)
def test_reference_time_of_durations_makes_no_difference(
    pool: Snapshot, durations: list[tuple[int, bool]], now_s: int
) -> None:
    """Durations given at the start of a job or at the current time are equivalent.

    This includes leaving jobs.
    """
    early = tuple(
        replace(job, ran_s=float(ran_s), activity=Activity.TERMINATING if goes else job.activity)
        if job.held
        else job
        for job, (ran_s, goes) in zip(pool.jobs, cycle(durations), strict=False)
    )
    late = tuple(
        replace(job, ran_s=job.ran_at(now_s), waits_s=job.waited_at(now_s), as_of_s=float(now_s))
        for job in early
    )
    one, other = (decide(replace(pool, jobs=jobs, now_s=float(now_s))) for jobs in (early, late))
    assert (one.commands, one.shares, one.over_quota) == (
        (other.commands, other.shares, other.over_quota)
    )


@settings(deadline=None)
@given(busy_snapshots(), st.lists(st.integers(0, 12_000), max_size=14))
def test_in_quota_work_is_not_preempted_for_younger_work(pool: Snapshot, ran: list[int]) -> None:
    """A job that loses GPUs was above quota (in its project or above) or lower in priority."""
    aged = tuple(
        replace(job, ran_s=float(seconds)) if job.held else job
        for job, seconds in zip(pool.jobs, [*ran, *[0] * len(pool.jobs)], strict=False)
    )
    pool = replace(pool, jobs=aged, now_s=0.0)
    for _ in range(3):
        pool = after(pool, decide(pool))
    last = decide(pool)
    assert not [c for c in last.commands if isinstance(c, Preempt)]  # R20: the pool settles
    assert all(job.activity is not Activity.RUNNING or job.held for job in pool.jobs)
