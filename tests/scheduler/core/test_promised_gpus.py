"""GPUs released by victims stay promised to the claimant until it starts (R20)."""

from __future__ import annotations

from dataclasses import replace

from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobId,
    Plan,
    Preempt,
    ReasonCode,
    Snapshot,
    Start,
)
from benchpool_scheduler.core.plan import decide
from benchpool_support.boxes import box, project, queued, running


def claim() -> Snapshot:
    """Susan holds all six GPUs; joe requests the two GPUs of his guarantee."""
    return box(
        6,
        [project("susan", 2), project("joe", 2)],
        [running("s1", "susan", 2), running("s2", "susan", 4), queued("j1", "joe", 2)],
    )


def the_start(plan: Plan, job: str) -> Start:
    return next(c for c in plan.commands if isinstance(c, Start) and c.job == job)


def under_way(pool: Snapshot) -> Snapshot:
    """Return the pool as a service sees it while the victims save their work."""
    plan = decide(pool)
    victims = {c.job for c in plan.commands if isinstance(c, Preempt)}
    waits = {c.job: c.workers for c in plan.commands if isinstance(c, Start) and c.after}
    jobs = [
        replace(job, activity=Activity.TERMINATING)
        if job.id in victims
        else replace(job, is_nominated=True, nominated=waits[job.id])
        if job.id in waits
        else job
        for job in pool.jobs
    ]
    return replace(pool, jobs=tuple(jobs))


def gone(pool: Snapshot) -> Snapshot:
    """Return the pool after leaving jobs have left and are queued again."""
    jobs = [
        replace(job, activity=Activity.QUEUED, held=())
        if job.activity is Activity.TERMINATING
        else job
        for job in pool.jobs
    ]
    return replace(pool, jobs=tuple(jobs))


def with_job(pool: Snapshot, name: str, project_name: str, gpus: int) -> Snapshot:
    return replace(pool, jobs=(*pool.jobs, queued(name, project_name, gpus)))


def test_start_names_victims_to_wait_for() -> None:
    plan = decide(claim())
    assert [c.job for c in plan.commands if isinstance(c, Preempt)] == ["s1"]
    assert the_start(plan, "j1").after == ("s1",)
    assert plan.reasons[JobId("j1")].code is ReasonCode.WAITING_FOR_VICTIMS


def test_promise_holds_while_victims_leave() -> None:
    first = decide(claim())
    pool = under_way(claim())
    for _ in range(3):
        plan = decide(pool)
        assert plan.commands == (the_start(first, "j1"),)
        assert plan.reasons[JobId("j1")].code is ReasonCode.WAITING_FOR_VICTIMS
        pool = under_way(pool)


def test_equal_newcomer_does_not_take_promised_gpus() -> None:
    pool = with_job(under_way(claim()), "j0", "joe", 1)
    plan = decide(pool)
    assert the_start(plan, "j1").workers == the_start(decide(claim()), "j1").workers
    assert not any(isinstance(c, Start) and c.job == "j0" and not c.after for c in plan.commands)


def test_higher_priority_newcomer_does_not_take_promised_gpus() -> None:
    pool = under_way(claim())
    urgent = queued("j0", "joe", 2)
    urgent = replace(urgent, spec=urgent.spec.changed(priority=90))
    pool = gone(replace(pool, jobs=(*pool.jobs, urgent)))
    assert the_start(decide(pool), "j1") == Start(
        JobId("j1"), the_start(decide(claim()), "j1").workers
    )


def test_limit_holds_while_leaving_job_holds_gpus() -> None:
    leaving = replace(running("s1", "susan", 2), activity=Activity.TERMINATING)
    pool = box(4, [project("susan", 2, limit=2)], [leaving, queued("s2", "susan", 2)])
    assert the_start(decide(pool), "s2").after == ("s1",)


def test_claimant_starts_on_promised_gpus() -> None:
    promised = the_start(decide(claim()), "j1").workers
    plan = decide(gone(under_way(claim())))
    assert the_start(plan, "j1") == Start(JobId("j1"), promised)
    assert plan.reasons[JobId("s1")].code is ReasonCode.FAIR_SHARE_REACHED


def test_cancelled_claimant_frees_promised_gpus() -> None:
    pool = gone(under_way(claim()))
    pool = replace(pool, jobs=tuple(job for job in pool.jobs if job.id != "j1"))
    assert the_start(decide(pool), "s1").after == ()


def test_broken_promised_gpu_is_replaced_by_new_claim() -> None:
    pool = under_way(claim())
    lost = the_start(decide(claim()), "j1").workers[0].gpus[0]
    node = replace(pool.nodes[0], gpus=tuple(gpu for gpu in pool.nodes[0].gpus if gpu != lost))
    plan = decide(replace(pool, nodes=(node,)))
    assert lost not in {gpu for worker in the_start(plan, "j1").workers for gpu in worker.gpus}


def test_gpus_of_leaving_job_are_claimed_without_victim() -> None:
    pool = box(
        4,
        [project("susan", 2), project("joe", 2)],
        [
            replace(running("s1", "susan", 2), activity=Activity.TERMINATING),
            running("s2", "susan", 2),
            queued("j1", "joe", 2),
        ],
    )
    plan = decide(pool)
    assert not any(isinstance(c, Preempt) for c in plan.commands)
    assert the_start(plan, "j1").after == ("s1",)


def grows() -> Snapshot:
    """Joe's elastic job runs with one of two workers in a pool from which susan has borrowed."""
    grower = running("j1", "joe", 1)
    spec = grower.spec.changed(workers=2, min_workers=1)
    pool = [project("susan", 0), project("joe", 2)]
    return box(2, pool, [running("s1", "susan", 1), replace(grower, spec=spec)])


def test_growth_gets_gpus_of_its_victims() -> None:
    first = the_start(decide(grows()), "j1")
    assert first.after == ("s1",)
    pool = under_way(grows())
    assert decide(pool).commands == (first,)
    grown = Start(JobId("j1"), first.workers)
    assert [
        c for c in decide(with_job(gone(pool), "j0", "joe", 1)).commands if isinstance(c, Start)
    ] == [grown]


def test_waiting_growth_does_not_block_free_growth() -> None:
    pool = under_way(grows())
    (spec,) = {job.spec for job in pool.jobs if job.id == "j1"}
    jobs = [
        replace(job, spec=spec.changed(workers=3)) if job.id == "j1" else job for job in pool.jobs
    ]
    node = replace(pool.nodes[0], gpus=(*pool.nodes[0].gpus, GpuId("new")))
    more = decide(replace(pool, nodes=(node,), jobs=tuple(jobs))).commands
    assert sorted(len(c.after) for c in more if isinstance(c, Start)) == [0, 1]


def test_growth_releases_promise_when_growth_is_forbidden() -> None:
    pool = under_way(grows())
    jobs = [
        replace(job, spec=job.spec.changed(workers=1)) if job.id == "j1" else job
        for job in pool.jobs
    ]
    assert decide(gone(replace(pool, jobs=tuple(jobs)))).commands == (
        Start(JobId("s1"), the_start(decide(grows()), "j1").workers),
    )
