"""Running jobs survive a lost, damaged or older database until an administrator decides."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.contract import AdoptionRequest, GpuState, Job, SafeModeIssues, State
from benchpool_scheduler.errors import Forbidden, InvalidInput, Unavailable
from benchpool_scheduler.runtime import UnexpectedWorkers, WorkerId
from benchpool_scheduler.service import Pool
from benchpool_scheduler.store import hold
from benchpool_support.pools import (
    ADMIN,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
    until_job,
)


async def run_on(pool: Pool, **more: Any) -> Job:
    """Submit a job, and wait until it runs."""
    job = await pool.jobs.submit(SUSAN, sleeper(**more))
    return await reached(pool, job.id, State.RUNNING)


async def left_running(state: Path, **more: Any) -> tuple[Job, int]:
    """Run a job under a service that ends; return it, and the PID of its supervisor."""
    pool = make_pool(state)
    await pool.open()
    job = await run_on(pool, **more)
    await pool.close()
    return job, supervisor(state, job)


def supervisor(state: Path, job: Job) -> int:
    record = state / "jobs" / job.id / "attempts" / str(job.attempt) / "worker-0" / "process.json"
    return int(json.loads(record.read_text())["pid"])


def database(state: Path) -> Path:
    return state / "scheduler" / "pool.sqlite"


async def decide(pool: Pool, **what: Any) -> SafeModeIssues:
    return await pool.adoption.act(ADMIN, AdoptionRequest(**what))


def held(pool: Pool) -> int:
    """Return the number of GPUs kept out of the pool."""
    return pool.views.status(ADMIN).counts[GpuState.FOREIGN]


def problems(pool: Pool) -> str:
    return " ".join(pool.views.status(ADMIN).health.problems)


def alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}/exe")


@pytest.mark.parametrize("harm", ["missing", "empty", "garbage"])
async def test_running_job_survives_lost_database_and_is_adopted(tmp_path: Path, harm: str) -> None:
    job, pid = await left_running(tmp_path, gpus=2, name="precious")
    for file in database(tmp_path).parent.glob("pool.sqlite*"):
        file.unlink()
    if harm != "missing":
        database(tmp_path).write_bytes(b"" if harm == "empty" else b"no database " * 1000)
    async with opened(make_pool(tmp_path)) as pool:
        assert alive(pid)
        assert held(pool) == 2
        for words in (str(database(tmp_path)), job.id, "benchpool adopt"):
            assert words in problems(pool)
        with pytest.raises(Unavailable) as refused:
            await pool.jobs.submit(SUSAN, sleeper())
        assert refused.value.code == "safe-mode"
        with pytest.raises(Forbidden):
            await pool.adoption.act(SUSAN, AdoptionRequest(go_on=True))

        issues = await decide(pool)
        (unknown,) = issues.unknown
        assert (unknown.id, unknown.name, unknown.user) == (job.id, "precious", "susan")
        assert len(unknown.gpus or ()) == 2
        await decide(pool, id=job.id[:8])
        now = await reached(pool, job.id, State.RUNNING)
        assert (now.name, now.project, now.attempt, now.gpus) == ("precious", "susan", 1, 2)
        issues = await decide(pool, go_on=True)
        assert (issues.hold, issues.unknown) == (None, [])
        await pool.housekeeping.look()
        assert (held(pool), problems(pool)) == (0, "")
        assert alive(pid)
        await run_on(pool)

        # An adopted job is ordinary: after a pause it resumes from its own submission.
        await pool.jobs.act(ADMIN, job.id, "pause")
        await reached(pool, job.id, State.PAUSED)
        await pool.jobs.act(ADMIN, job.id, "resume")
        assert (await reached(pool, job.id, State.RUNNING)).attempt == 2


async def test_safe_mode_hold_survives_restarts_until_decision(tmp_path: Path) -> None:
    _, pid = await left_running(tmp_path)
    database(tmp_path).unlink()
    for _ in range(2):
        pool = make_pool(tmp_path)
        await pool.open()
        assert pool.observed.now.safe_mode.hold is not None
        await pool.close()
    async with opened(make_pool(tmp_path)) as pool:
        issues = await decide(pool, go_on=True)
        await decide(pool, id=issues.unknown[0].id, end=True)
        while (await decide(pool)).unknown:
            await pool.housekeeping.look()
        assert not alive(pid)
    async with opened(make_pool(tmp_path)) as pool:
        assert pool.observed.now.safe_mode.quiet


def by_safe_mode(job: Job) -> bool:
    return job.reason is not None and job.reason.code == "safe-mode"


async def test_queued_job_waits_during_safe_mode_hold(tmp_path: Path) -> None:
    pool = make_pool(tmp_path)
    await pool.open()
    first = await run_on(pool, gpus=6)
    waiting = await pool.jobs.submit(SUSAN, sleeper(gpus=1, preemptible=False))
    assert (await decided(pool, waiting.id)).state is State.QUEUED
    await pool.jobs.act(ADMIN, first.id, "cancel")
    await pool.close()
    hold.write(database(tmp_path), "A page of it was damaged.")

    async with opened(make_pool(tmp_path)) as pool:
        held_back = await until_job(pool, waiting.id, by_safe_mode)
        assert held_back.reason is not None
        assert held_back.estimated_start is None
        assert "database was lost or damaged" in held_back.reason.text
        assert "benchpool status" in held_back.reason.remedy
        assert pool.jobs.why(SUSAN, waiting.id).reason == held_back.reason
        with pytest.raises(InvalidInput, match="is missing"):
            await decide(pool, end=True)
        await decide(pool, go_on=True)
        await reached(pool, waiting.id, State.RUNNING)


async def test_restored_database_ends_and_duplicates_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool(tmp_path)
    await pool.open()
    first = await run_on(pool, gpus=2, name="first")
    waiting = await pool.jobs.submit(SUSAN, sleeper(gpus=6, name="waits"))
    await pool.close()
    shutil.copy(database(tmp_path), tmp_path / "old.sqlite")
    pool = make_pool(tmp_path)
    await pool.open()
    await pool.jobs.act(ADMIN, first.id, "cancel")
    started = await reached(pool, waiting.id, State.RUNNING)
    await pool.close()
    pid = supervisor(tmp_path, started)

    (tmp_path / "old.sqlite").rename(database(tmp_path))
    async with opened(make_pool(tmp_path)) as pool:
        # In the backup, the ended job runs and the running job waits.
        assert alive(pid)
        (unknown,) = (await decide(pool)).unknown
        assert (unknown.id, unknown.in_line) == (waiting.id, True)
        small = await pool.jobs.submit(SUSAN, sleeper(gpus=1))
        assert small.id
        held_back = pool.jobs.detail(SUSAN, waiting.id).job
        assert (held_back.state, held_back.estimated_start) == (State.QUEUED, None)
        assert held_back.reason is not None
        assert held_back.reason.code == "runs-unrecorded"
        assert f"benchpool adopt {waiting.id}" in held_back.reason.remedy
        assert "attempt 1" in held_back.reason.text
        runtime = pool.runtime
        assert isinstance(runtime, UnexpectedWorkers)
        adopt = runtime.adopt

        async def adopt_in_a_pass(worker: WorkerId) -> None:
            await pool.passes.make()  # the job is recorded, and still listed as unknown
            await adopt(worker)

        monkeypatch.setattr(runtime, "adopt", adopt_in_a_pass)
        await decide(pool, id=waiting.id)
        now = await reached(pool, waiting.id, State.RUNNING)
        assert now.attempt == 1
        assert alive(pid)
        assert (await decide(pool)).unknown == []


@pytest.mark.parametrize("workers", [1, 2])
async def test_job_paused_after_backup_is_requeued(tmp_path: Path, workers: int) -> None:
    job, _ = await left_running(tmp_path, workers=workers)
    copy = shutil.copy(database(tmp_path), tmp_path / "copy.sqlite")
    pool = make_pool(tmp_path)
    await pool.open()
    await reached(pool, job.id, State.RUNNING)
    await pool.jobs.act(SUSAN, job.id, "pause")
    await reached(pool, job.id, State.PAUSED)
    await pool.close()
    for file in database(tmp_path).parent.glob("pool.sqlite*"):
        file.unlink()
    shutil.copy(copy, database(tmp_path))
    pool = make_pool(tmp_path, gpus=0)
    await pool.open()
    await until_job(pool, job.id, lambda now: now.state is State.QUEUED)
    record = pool.ledger.job(job.id)
    assert record is not None
    assert record.note is not None
    assert record.note.text.startswith(
        "Attempt 1 was stopped by a decision that is not in the data"
    )
    await pool.close()
    async with opened(make_pool(tmp_path)) as pool:
        again = await until_job(pool, job.id, lambda now: now.attempt == 2)
        assert again.state in {State.STARTING, State.RUNNING}
        detail = pool.jobs.detail(SUSAN, job.id)
        assert (detail.attempts[0].ended_by, detail.attempts[0].exit_code) == ("notice", 143)


@pytest.mark.parametrize("table", ["jobs", "attempts"])
async def test_unreadable_record_holds_only_its_gpus(tmp_path: Path, table: str) -> None:
    job, pid = await left_running(tmp_path, gpus=2)
    with sqlite3.connect(database(tmp_path)) as db:
        db.execute(f"UPDATE {table} SET facts = '{{'")  # noqa: S608 (a name of ours)
    async with opened(make_pool(tmp_path)) as pool:
        assert alive(pid)
        assert held(pool) == 2
        issues = await decide(pool)
        (record,) = issues.unreadable
        assert (issues.hold, record.id, record.file) == (None, job.id, str(database(tmp_path)))
        assert job.id in problems(pool)
        other = await run_on(pool, gpus=1)
        assert other.state is State.RUNNING
        await decide(pool, id=job.id)
        assert (await reached(pool, job.id, State.RUNNING)).attempt == 1
        await pool.housekeeping.look()
        assert (held(pool), problems(pool), alive(pid)) == (0, "", True)


async def test_unreadable_record_of_ended_job_is_discarded(
    tmp_path: Path,
) -> None:
    pool = make_pool(tmp_path)
    await pool.open()
    job = await pool.jobs.submit(SUSAN, sleeper())
    await reached(pool, job.id, State.RUNNING)
    await pool.jobs.act(ADMIN, job.id, "cancel")
    await reached(pool, job.id, State.CANCELLED)
    await pool.close()
    with sqlite3.connect(database(tmp_path)) as db:
        db.execute("UPDATE jobs SET facts = '{'")
    async with opened(make_pool(tmp_path)) as pool:
        assert len((await decide(pool)).unreadable) == 1
        assert (await decide(pool, id=job.id, end=True)).unreadable == []
    async with opened(make_pool(tmp_path)) as pool:
        assert pool.observed.now.safe_mode.quiet


async def test_job_without_origin_file_is_recovered_from_process(tmp_path: Path) -> None:
    job, pid = await left_running(tmp_path, gpus=2, name="old")
    next((tmp_path / "jobs" / job.id).rglob("origin.json")).unlink()
    database(tmp_path).unlink()
    async with opened(make_pool(tmp_path)) as pool:
        (unknown,) = (await decide(pool)).unknown
        assert (unknown.name, unknown.user, len(unknown.gpus or ())) == ("old", "susan", 2)
        await decide(pool, id=job.id, go_on=True)
        now = await reached(pool, job.id, State.RUNNING)
        assert (now.name, now.gpus, alive(pid)) == ("old", 2, True)


async def test_ambiguous_id_prefix_ends_no_orphan(tmp_path: Path) -> None:
    pool = make_pool(tmp_path)
    await pool.open()
    for _ in range(2):
        await run_on(pool)
    await pool.close()
    database(tmp_path).unlink()
    async with opened(make_pool(tmp_path)) as pool:
        with pytest.raises(InvalidInput, match=r"2 unknown ids .* more characters") as refused:
            await decide(pool, id="", end=True)
        assert refused.value.code == "ambiguous-id"
        for one in (await decide(pool)).unknown:
            await decide(pool, id=one.id, end=True)
        while (await decide(pool)).unknown:
            await pool.housekeeping.look()
