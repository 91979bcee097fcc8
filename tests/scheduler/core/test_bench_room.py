"""GPUs reserved for benches are not available to jobs, and over-quota work returns them (R3)."""

from __future__ import annotations

from dataclasses import replace

from benchpool_scheduler.core.model import Preempt, Snapshot, Start
from benchpool_scheduler.core.plan import decide
from benchpool_support.boxes import box, project, queued, running


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
