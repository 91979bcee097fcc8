"""Limits per user: usage is counted, refused above the limit and freed at the end."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchpool_scheduler.configuration import Budgets, compare, load
from benchpool_scheduler.configuration.declared import Declared, document, objects
from benchpool_scheduler.contract import State
from benchpool_scheduler.errors import InvalidInput, TooLarge, TooMany
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.store.records import AddObject
from benchpool_support.pools import (
    ADMIN,
    JOE,
    STORY,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
)
from benchpool_support.scripted import ScriptedRuntime, devices

GIB = 1024**3
BUDGETS = "budgets: {jobs: 10, submissions_mib: 1, uploads_gib: 3, stored_gib: 2}\n"
SMALLER = STORY.replace("quota: 6", "quota: 5")  # the number of GPUs for training
LARGE = replace(sleeper(gpus=2), env={f"A{i}": "x" * 31_000 for i in range(8)})
HUB = Caller("benchpool-hub", admin=True, kind="service")
A, B = "a" * 64, "b" * 64


def made(tmp_path: Path) -> Pool:
    runtime = ScriptedRuntime(devices(9))
    return make_pool(tmp_path, runtime=runtime, configuration=story(STORY + BUDGETS))


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    async with opened(made(tmp_path)) as pool:
        yield pool


async def test_submission_bytes_of_unfinished_jobs_are_limited(pool: Pool, tmp_path: Path) -> None:
    jobs = [await pool.jobs.submit(SUSAN, replace(LARGE, gpus=6)) for _ in range(4)]
    with pytest.raises(TooMany, match=r"with this one 124\d{4}; 1 MiB are allowed") as refused:
        await pool.jobs.submit(SUSAN, LARGE)
    assert refused.value.code == "too-many-submission-bytes"
    await pool.jobs.submit(JOE, LARGE)
    await pool.jobs.act(SUSAN, jobs[-1].id, "cancel")
    await reached(pool, jobs[-1].id, State.CANCELLED)
    await pool.jobs.submit(SUSAN, LARGE)


async def test_oversized_request_is_not_advised_to_wait(tmp_path: Path) -> None:
    """Waiting for another job or upload would not help, so the advice is less or a larger limit."""
    alone = replace(LARGE, parameters={f"p{number}": "x" * 60_000 for number in range(20)})
    small = story(SMALLER + "budgets: {submissions_mib: 1, uploads_gib: 1}\n")
    async with opened(make_pool(tmp_path, configuration=small)) as pool:
        with pytest.raises(TooLarge, match=r"1 MiB are allowed\. Put values") as refused:
            await pool.jobs.submit(SUSAN, alone)
        assert refused.value.message.endswith("can raise budgets.submissions_mib.")
        await pool.jobs.submit(SUSAN, replace(alone, parameters={}))
        with pytest.raises(TooLarge, match=r"1 GiB together are allowed\. Keep data") as refused:
            pool.uploads.writer(SUSAN, A, GIB + 1)
        assert refused.value.message.endswith("can raise budgets.uploads_gib.")
        pool.uploads.writer(SUSAN, A, GIB).abort()
        more_text = SMALLER + "budgets: {submissions_mib: 2, uploads_gib: 2}\n"
        await pool.configuration.apply(ADMIN, more_text)
        await pool.jobs.submit(SUSAN, alone)
        pool.uploads.writer(SUSAN, A, GIB + 1).abort()


async def test_ended_job_frees_submission_bytes_and_memory(pool: Pool) -> None:
    await pool.jobs.submit(SUSAN, replace(LARGE, gpus=6))
    waiting = await pool.jobs.submit(SUSAN, LARGE)
    assert pool.ledger.submission_bytes.of("susan") > 490_000
    assert pool.ledger.submission_cache.get(waiting.id) is not None
    await pool.jobs.act(SUSAN, waiting.id, "cancel")
    await reached(pool, waiting.id, State.CANCELLED)
    assert pool.ledger.submission_bytes.of("susan") < 300_000
    assert pool.ledger.submission_cache.get(waiting.id) is None
    assert pool.ledger.submission(waiting.id).env == LARGE.env  # read from the store


async def test_submission_bytes_are_counted_after_restart(tmp_path: Path) -> None:
    async with opened(made(tmp_path)) as pool:
        for _ in range(4):
            await pool.jobs.submit(SUSAN, LARGE)
    async with opened(made(tmp_path)) as pool:
        with pytest.raises(TooMany, match="1 MiB are allowed"):
            await pool.jobs.submit(SUSAN, LARGE)


async def test_full_home_blocks_submissions(tmp_path: Path) -> None:
    home = tmp_path / "homes" / "susan"
    home.mkdir(parents=True)
    large = home / "large"
    with large.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, GIB + 4096)
    settings = story(STORY + "budgets: {home_gib: 1}\n")
    runtime = ScriptedRuntime(devices(9))
    async with opened(make_pool(tmp_path, runtime=runtime, configuration=settings)) as pool:
        with pytest.raises(TooLarge, match=r"home of susan holds 1\.0 GiB; 1 GiB are") as refused:
            await pool.jobs.submit(SUSAN, sleeper())
        assert refused.value.code == "home-full"
        assert str(home) in refused.value.message
        await pool.jobs.submit(JOE, sleeper())
        await pool.jobs.submit(HUB, replace(sleeper(), project="susan"))
        large.unlink()
        await pool.jobs.submit(SUSAN, sleeper())  # counted again immediately


async def test_concurrent_uploads_are_limited_by_announced_bytes(pool: Pool) -> None:
    first = pool.uploads.writer(SUSAN, A, 2 * GIB)
    with pytest.raises(TooMany, match=f"have {4 * GIB} bytes with this one; 3 GiB are allowed"):
        pool.uploads.writer(SUSAN, B, 2 * GIB)
    pool.uploads.writer(JOE, B, 2 * GIB).abort()
    pool.uploads.writer(HUB, B, 2 * GIB).abort()
    first.abort()
    pool.uploads.writer(SUSAN, B, 2 * GIB).abort()


async def test_stored_contents_are_limited(pool: Pool) -> None:
    await pool.ledger.store.commit(AddObject(A, "susan", 2 * GIB - 10, 0.0))
    pool.uploads.writer(SUSAN, B, 10).abort()
    with pytest.raises(TooLarge, match=f"have {2 * GIB + 1} bytes with this one; 2 GiB") as refused:
        pool.uploads.writer(SUSAN, B, 11)
    assert refused.value.code == "stored-contents"
    assert "Contents without a job are removed 1 d after their upload" in refused.value.message
    pool.uploads.writer(SUSAN, A, 100).abort()  # already stored: nothing is added
    pool.uploads.writer(JOE, B, 11).abort()


def test_budgets_are_parsed_compared_and_validated() -> None:
    usual, mine = load(STORY), load(f"{STORY}budgets: {{jobs: 5, streams: 2}}\n")
    assert (usual.budgets, mine.budgets) == (Budgets(), Budgets(jobs=5, streams=2))
    assert compare(usual, mine) == [
        "Budget of each user: jobs 10000 → 5.",
        "Budget of each user: streams 64 → 2.",
    ]
    with pytest.raises(
        InvalidInput, match=r"budgets\.jbos is not a known key; did you mean `jobs`"
    ):
        load("version: 1\nbudgets: {jbos: 5}")
    with pytest.raises(InvalidInput, match=r"budgets\.jobs is 0; it must be between 1 and"):
        load("version: 1\nbudgets: {jobs: 0}")


def test_budgets_survive_conversion_to_cluster_objects() -> None:
    found: list[Declared] = objects(f"{STORY}{BUDGETS}")
    assert load(document(found).text).budgets == load(f"{STORY}{BUDGETS}").budgets
