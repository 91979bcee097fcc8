"""The preview of a job in the dialog matches its later course."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.model import JobFacts, JobId, Snapshot, Start
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.core.whatif.preview import preview
from benchpool_support.boxes import box, project, queued, running
from benchpool_support.examples import examples
from benchpool_support.snapshots import snapshots

TRIO = [project("susan", 2), project("joe", 2), project("jemma", 2)]


@pytest.mark.parametrize(
    ("job", "starts", "within", "over"),
    [
        (queued("n", "joe", 1), "now", 1, 0),
        (queued("n", "joe", 2), "after-reclaim", 2, 0),
        (queued("n", "susan", 3), "waits", 0, 3),
        (queued("n", "joe", 7), "never", 2, 5),
        (queued("n", "joe", 1, workers=7), "never", 2, 5),
        (queued("n", "joe", 3, preemptible=False), "never", 2, 1),
    ],
)
def test_preview_shows_start_and_quota_coverage(
    job: JobFacts, starts: str, within: int, over: int
) -> None:
    pool = box(6, TRIO, [running("s1", "susan", 2), running("s2", "susan", 3)])
    outcome = preview(pool, job)
    assert (outcome.starts, outcome.within_quota, outcome.over_quota) == (starts, within, over)
    assert (outcome.reason is None) == (starts == "now")


def test_job_beyond_project_limit_never_starts() -> None:
    pool = box(6, [project("susan", 2, limit=3)], [])
    assert preview(pool, queued("n", "susan", 4)).starts == "never"
    assert preview(pool, queued("n", "susan", 3)).starts == "now"


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(snapshots(), st.integers(1, 6))
def test_preview_matches_next_pass(pool: Snapshot, gpus: int) -> None:
    parents = {project.parent for project in pool.projects}
    leaf = next(p.name for p in reversed(pool.projects) if p.name not in parents)
    job = JobFacts(JobId("new"), leaf, spec=JobSpec(gpus=gpus))
    starts = preview(pool, job).starts
    with_it = Snapshot(pool.nodes, pool.projects, (*pool.jobs, job), pool.policy)
    started = [c for c in decide(with_it).commands if isinstance(c, Start) and c.job == "new"]
    if starts == "now":
        assert started[0].after == ()
    elif starts == "after-reclaim":
        assert started[0].after != ()
    else:
        assert not started
