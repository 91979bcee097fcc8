"""GPUs reserved for benches are not available to jobs, and over-quota work returns them (R3)."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from benchpool_scheduler.core.model import Policy, Preempt, Snapshot, Start
from benchpool_scheduler.core.plan import decide
from benchpool_support.boxes import box, node, pool_of, project, queued, running
from benchpool_support.settling import settle


def keeping(pool: Snapshot, kept: int) -> Snapshot:
    return replace(pool, nodes=tuple(replace(node, kept=kept) for node in pool.nodes))


def victims(pool: Snapshot) -> list[tuple[str, str | None, str]]:
    return [(c.job, c.claimant, c.rule) for c in decide(pool).commands if isinstance(c, Preempt)]


def test_reserved_bench_gpus_start_no_job() -> None:
    lab = project("a", 0, weight=1)
    pool = keeping(box(3, [lab], [queued("x", "a", 2), queued("y", "a", 1)]), 1)
    started = [c.job for c in decide(pool).commands if isinstance(c, Start)]
    assert started == ["x"]
    assert decide(pool).shares[pool.projects[0].name].fair_share == 2


def test_benches_preempt_least_over_quota_work() -> None:
    jobs = [running("a1", "a", 2), running("a2", "a", 1), running("a3", "a", 1)]
    pool = keeping(box(4, [project("a", 2)], jobs), 1)
    assert victims(pool) == [("a3", None, "R3")]


def test_in_quota_work_is_not_preempted_for_benches() -> None:
    jobs = [running("a1", "a", 2), running("b1", "b", 2)]
    pool = keeping(box(4, [project("a", 2), project("b", 1)], jobs), 3)
    assert victims(pool) == [("b1", None, "R3")]


def test_non_preemptible_work_is_not_preempted_for_benches() -> None:
    pool = keeping(box(2, [project("a", 0)], [running("a1", "a", 2, preemptible=False)]), 1)
    assert victims(pool) == []


def bench_behind_protected_job(kept: int) -> Snapshot:
    """A pool whose node ``b`` lacks a bench GPU: its over-quota job was preempted too often.

    The elastic job beside it is within quota, and could grow on node ``a`` (R15).
    """
    grows = running("grows", "susan", on="b", min_workers=1, workers=1)
    jobs = [
        queued("waits", "joe"),
        running("lends", "joe", on="a"),
        running("protected", "joe", on="b", preemptions_last_hour=4),
        replace(grows, spec=structs.replace(grows.spec, workers=2)),
    ]
    policy = Policy(min_runtime_s=0.0, preemptions_per_hour=4, usage_weight=0.0)
    nodes = [node("a", 1), node("b", 2, kept=kept)]
    return pool_of(nodes, [project("susan", 1), project("joe", 0)], jobs, policy)


def test_job_beside_short_bench_does_not_grow_over_quota() -> None:
    """Over quota, it would be the only candidate for the bench, and stop in the next pass (R20)."""
    pool = bench_behind_protected_job(kept=1)
    assert decide(pool).commands == ()
    assert settle(pool).acting == 0


def test_job_grows_over_quota_where_no_bench_is_short() -> None:
    pool = bench_behind_protected_job(kept=0)
    assert victims(pool) == [("lends", "grows", "R15")]
