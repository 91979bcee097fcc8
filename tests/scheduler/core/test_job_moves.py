"""Choice of the job that moves so that a wide job gets a node (R18)."""

from __future__ import annotations

from dataclasses import replace

from benchpool_scheduler.core.model import Preempt, Snapshot, Start
from benchpool_scheduler.core.plan import decide
from benchpool_support.boxes import node, pool_of, project, queued, running


def halves(first: int, second: int) -> Snapshot:
    """Return two half-full nodes, a job for a whole node, and the pauses of the small jobs."""
    a, b = running("a", "susan", on="n0"), running("b", "susan", on="n1")
    jobs = [
        replace(a, preemptions_last_hour=first, since_checkpoint_s=30.0),
        replace(b, preemptions_last_hour=second, since_checkpoint_s=3000.0),
        queued("wide", "susan", 2),
    ]
    return pool_of([node("n0", 2), node("n1", 2)], [project("susan", 4)], jobs)


def moved(pool: Snapshot) -> list[str]:
    return [c.job for c in decide(pool).commands if isinstance(c, Preempt) and c.rule == "R18"]


def test_job_losing_less_is_moved() -> None:
    assert moved(halves(0, 0)) == ["a"]


def test_recently_paused_job_is_not_moved() -> None:
    assert moved(halves(1, 0)) == ["b"]


def test_wide_job_waits_if_all_jobs_were_recently_paused() -> None:
    plan = decide(halves(1, 1))
    assert not [c for c in plan.commands if isinstance(c, Start | Preempt)]
    assert "wide" in plan.reasons
