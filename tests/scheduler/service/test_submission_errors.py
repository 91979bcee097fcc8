"""Refusals at submission: a sentence, a code, the field and the numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import (
    CommandEntry,
    JobSubmission,
    NotebookEntry,
    ScriptEntry,
    SnapshotFile,
)
from benchpool_scheduler.errors import BenchpoolError, Forbidden, InvalidInput, Refused, TooMany
from benchpool_scheduler.service import Caller, Pool
from benchpool_support.pools import ADMIN, JOE, STORY, SUSAN, make_pool, opened, sleeper, story
from benchpool_support.scripted import ScriptedRuntime, devices

TREE = story(
    """
version: 1
build: {users: {susan: 2}}
projects:
  - {name: lab}
  - {name: susan, parent: lab, quota: 2, members: [susan]}
  - {name: joe, parent: lab, quota: 2, limit: 3, members: [joe, "group:staff"]}
  - {name: staff, quota: 1, members: ["group:staff"]}
"""
)
STAFF = Caller("kim", groups=frozenset({"staff"}))
OUTSIDER = Caller("eve")
A, B = "a" * 64, "b" * 64


def script(**more: object) -> JobSubmission:
    return JobSubmission(entry=ScriptEntry("train.py"), **more)  # type: ignore[arg-type]


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    runtime = ScriptedRuntime(devices(8))
    async with opened(make_pool(tmp_path, configuration=TREE, runtime=runtime)) as pool:
        yield pool


CASES: list[tuple[Caller, JobSubmission, type[BenchpoolError], str, str]] = [
    (
        SUSAN,
        sleeper(gpus=7),
        InvalidInput,
        "larger-than-node",
        "training. Ask for at most 6 per worker.",
    ),
    (SUSAN, sleeper(gpus=4, workers=2), InvalidInput, "larger-than-pool", "at most 1 worker"),
    (SUSAN, sleeper(workers=2, min_workers=3), InvalidInput, "invalid-input", "choose 1 to 2"),
    (JOE, sleeper(gpus=4), Refused, "project-limit", "joe may hold at most 3"),
    (
        JOE,
        sleeper(gpus=3, preemptible=False),
        Refused,
        "non-preemptible-over-quota",
        "guaranteed 2",
    ),
    (SUSAN, sleeper(project="jo"), InvalidInput, "no-such-project", "no project 'jo'"),
    (SUSAN, sleeper(project="joe"), Forbidden, "not-a-member", "yours: susan"),
    (SUSAN, sleeper(project="lab"), InvalidInput, "project-holds-no-jobs", "it: susan."),
    (STAFF, sleeper(), InvalidInput, "ambiguous-project", "2 projects (joe, staff)"),
    (OUTSIDER, sleeper(), Refused, "no-project", "eve belongs to no project"),
    (SUSAN, sleeper(env={"BENCHPOOL_X": "1"}), InvalidInput, "reserved-variable", "BENCHPOOL_X"),
    (
        SUSAN,
        sleeper(env={"CUDA_VISIBLE_DEVICES": "0"}),
        InvalidInput,
        "reserved-variable",
        "CUDA_VISIBLE_DEVICES",
    ),
    (SUSAN, sleeper(env={"A": "x" * 300_000}), BenchpoolError, "too-large", "262144"),
    (SUSAN, sleeper(working_dir="data"), InvalidInput, "invalid-input", "absolute path"),
    (SUSAN, sleeper(output_dir="/home/../etc"), InvalidInput, "invalid-input", "without '..'"),
    (SUSAN, sleeper(interpreter="bin/python"), InvalidInput, "invalid-input", "python3"),
    (SUSAN, sleeper(name="two\nlines"), InvalidInput, "invalid-input", "invisible or control"),
    (SUSAN, script(), InvalidInput, "script-not-sent", "not among the 0 files"),
    (
        SUSAN,
        script(files=[SnapshotFile("../x", A, 1)]),
        InvalidInput,
        "invalid-input",
        "'../x' is not allowed",
    ),
    (
        SUSAN,
        script(files=[SnapshotFile("x", A, 1), SnapshotFile("x", A, 1)]),
        InvalidInput,
        "invalid-input",
        "listed twice",
    ),
    (
        SUSAN,
        script(files=[SnapshotFile("a", A, 1), SnapshotFile("a/b/c", A, 1)]),
        InvalidInput,
        "invalid-input",
        "'a' is listed as a file and as the folder of 'a/b/c'",
    ),
    (
        SUSAN,
        script(files=[SnapshotFile("a/" * 129 + "b", A, 1)]),
        InvalidInput,
        "invalid-input",
        "lies 129 folders deep; 128 are allowed",
    ),
    (
        SUSAN,
        script(files=[SnapshotFile("x" * 256, A, 1)]),
        InvalidInput,
        "invalid-input",
        "has a name of 256 bytes; 255 are allowed",
    ),
    (
        SUSAN,  # names may differ only in case, and share a prefix
        script(files=[SnapshotFile(name, A, 1) for name in ("train.py", "a", "A/b", "ab/c")]),
        InvalidInput,
        "missing-objects",
        "1 of 1 contents",
    ),
    (
        SUSAN,
        script(files=[SnapshotFile("train.py", A, 1), SnapshotFile("b", B, 1)]),
        InvalidInput,
        "missing-objects",
        "2 of 2 contents",
    ),
    (
        SUSAN,
        script(files=[SnapshotFile("train.py", A, 2**40)]),
        BenchpoolError,
        "too-large",
        "10737418240 are allowed",
    ),
    (
        SUSAN,
        JobSubmission(entry=NotebookEntry(A, "x.ipynb")),
        InvalidInput,
        "missing-objects",
        "1 of 1",
    ),
    (
        SUSAN,
        JobSubmission(entry=CommandEntry(["a\0b"])),
        InvalidInput,
        "invalid-input",
        "zero byte",
    ),
]


@pytest.mark.parametrize(
    ("caller", "submission", "kind", "code", "words"),
    CASES,
    ids=[f"{case[3]}-{number}" for number, case in enumerate(CASES)],
)
async def test_invalid_submission_is_refused(
    pool: Pool,
    caller: Caller,
    submission: JobSubmission,
    kind: type[BenchpoolError],
    code: str,
    words: str,
) -> None:
    with pytest.raises(kind) as caught:
        await pool.jobs.submit(caller, submission)
    assert caught.value.code == code
    assert words in caught.value.message
    assert pool.jobs.select(ADMIN, all=True) == []
    assert pool.figures.read().refusals[code] == 1


async def test_only_project_of_user_is_default(pool: Pool) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper())
    assert (job.project, job.name, pool.jobs.submission(SUSAN, job.id).project) == (
        "susan",
        "sleep",
        "susan",
    )


async def test_administrator_may_submit_to_any_project(pool: Pool) -> None:
    job = await pool.jobs.submit(ADMIN, sleeper(project="joe"))
    assert (job.user, job.project) == ("ada", "joe")


async def test_job_budget_limits_one_user(pool: Pool) -> None:
    smaller = STORY.replace("quota: 6", "quota: 5")  # the number of GPUs without the benches
    await pool.configuration.apply(ADMIN, f"{smaller}budgets: {{jobs: 2}}\n")
    await pool.jobs.submit(SUSAN, sleeper())
    await pool.jobs.submit(SUSAN, sleeper())
    with pytest.raises(TooMany, match="susan has 2 jobs that have not ended; 2 are allowed"):
        await pool.jobs.submit(SUSAN, sleeper())
    await pool.jobs.submit(JOE, sleeper())


async def test_preview_shows_start_and_stores_nothing(pool: Pool) -> None:
    now = await pool.jobs.preview(SUSAN, script(gpus=4, files=[SnapshotFile("train.py", A, 1)]))
    assert (now.project, now.gpus, now.within_quota, now.over_quota) == ("susan", 4, 2, 2)
    assert (now.starts, now.reason) == ("now", None)
    assert now.text == (
        "Starts now; 2 GPUs within quota, 2 over it: may be paused for others, then resumes by "
        "itself."
    )
    assert pool.jobs.select(SUSAN) == []
    with pytest.raises(InvalidInput, match="can never run"):
        await pool.jobs.preview(SUSAN, sleeper(gpus=7))


async def test_preview_shows_reclaim_and_waiting(pool: Pool) -> None:
    await pool.jobs.submit(SUSAN, sleeper(gpus=6))
    runtime: ScriptedRuntime = pool.runtime  # type: ignore[assignment]
    await runtime.until_launched(1)
    assert (await pool.jobs.preview(JOE, sleeper(gpus=2))).starts == "after-reclaim"
    more = await pool.jobs.preview(SUSAN, sleeper(gpus=1))
    assert more.starts == "waits"
    assert more.reason is not None
    assert more.text.startswith("Waits for 1 GPU: 0 of 6 are free")


async def test_job_over_project_cpu_limit_is_refused(
    tmp_path: Path,
) -> None:
    """Such a job was once accepted and waited forever, because only the core checked the limit."""
    bounded = story(
        """
version: 1
build: {default: 0}
projects: [{name: susan, quota: 2, members: [susan], cpus: {limit: 4}}]
"""
    )
    runtime = ScriptedRuntime(devices(2))
    async with opened(make_pool(tmp_path, configuration=bounded, runtime=runtime)) as pool:
        await pool.jobs.submit(SUSAN, sleeper(cpus=4))
        with pytest.raises(Refused) as refused:
            await pool.jobs.submit(SUSAN, sleeper(cpus=5))
        assert refused.value.code == "project-limit"
        assert "at most 4 CPUs" in refused.value.message
