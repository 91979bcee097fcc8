"""Results and checkpoints of a user are limited in bytes; refusals name the way out."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from benchpool_scheduler.api import workers
from benchpool_scheduler.api.agent_endpoint import Agents
from benchpool_scheduler.configuration import compare, load
from benchpool_scheduler.contract import FilesQuota, JobDiscard, State
from benchpool_scheduler.errors import InvalidInput, NotFound, Refused, TooLarge
from benchpool_scheduler.phrases import files_held
from benchpool_scheduler.runtime import Part
from benchpool_scheduler.runtime.kubernetes import AgentApi, AgentTokens
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.jobs import job_file_quota
from benchpool_scheduler.service.jobs.job_file_quota import GOOD_S
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.worker_id import WorkerId
from benchpool_support.clocks import LeapingClock
from benchpool_support.pools import (
    JOE,
    STORY,
    SUSAN,
    make_pool,
    opened,
    python_job,
    reached,
    sleeper,
    story,
)
from benchpool_support.real_pods import Bundle

GIB = 1024**3
BOUNDS = "budgets: {results_gib: 1, checkpoints_gib: 2}\n"
HUB = Caller("benchpool-hub", admin=True, kind="service")
TOKENS = AgentTokens(b"s" * 32)
WRITES = """
import os, pathlib
for folder, size in (("OUTPUT", {results}), ("CHECKPOINT", {checkpoints})):
    if size:
        with pathlib.Path(os.environ[f"BENCHPOOL_{{folder}}_DIR"], "large").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
"""

STAYS = """
import time
print("written", flush=True)
time.sleep(600)
"""


@pytest.fixture
def clock() -> LeapingClock:
    return LeapingClock()


@pytest.fixture
async def pool(tmp_path: Path, clock: LeapingClock) -> AsyncIterator[Pool]:
    settings = story(STORY + BOUNDS)
    async with opened(make_pool(tmp_path, configuration=settings, clock=clock)) as pool:
        yield pool


async def one_that_leaves(pool: Pool, *, results: int = 0, checkpoints: int = 0) -> str:
    """Run a job of susan that writes the given number of bytes; return its ID."""
    text = WRITES.format(results=results, checkpoints=checkpoints)
    job = await pool.jobs.submit(SUSAN, replace(python_job(text), name="large"))
    await reached(pool, job.id, State.SUCCEEDED)
    return job.id


async def test_results_over_limit_block_submissions_until_discarded(
    pool: Pool,
) -> None:
    small = await one_that_leaves(pool, results=4096)
    job = await one_that_leaves(pool, results=GIB)
    with pytest.raises(TooLarge) as refused:
        await pool.jobs.submit(SUSAN, sleeper())
    assert refused.value.code == "results-full"
    held = refused.value.numbers["bytes"]
    assert isinstance(held, int)
    assert GIB < held < GIB + 100_000
    assert refused.value.message == (
        f"The results of the jobs of susan hold 1.0 GiB; 1.0 GiB are allowed. Of the ended jobs, "
        f"{job[:8]} (large) holds most, 1.0 GiB: save the files that you need, then `benchpool "
        f"discard {job[:8]} --results` deletes them for good. An administrator can raise "
        "budgets.results_gib."
    )
    await pool.jobs.submit(JOE, sleeper())
    await pool.jobs.submit(HUB, replace(sleeper(), project="susan"))
    assert await pool.files.discard(SUSAN, job[:8], JobDiscard(results=True)) == job
    await pool.jobs.submit(SUSAN, sleeper())  # counted again immediately
    folder = pool.observed.settings.state / "jobs"
    assert (folder / small / "output" / "large").exists()
    assert pool.jobs.detail(SUSAN, job).attempts


async def test_checkpoints_have_their_own_limit_and_usage(pool: Pool) -> None:
    await one_that_leaves(pool, checkpoints=GIB, results=8192)
    parts = {it.part: it for it in await pool.files.of("susan")}
    assert (parts["results"].limit, parts["checkpoints"].limit) == (GIB, 2 * GIB)
    assert parts["results"].bytes < 100_000
    assert GIB < parts["checkpoints"].bytes < GIB + 100_000
    assert files_held([parts["checkpoints"]]) == "checkpoints hold 1.0 GiB of 2.0 GiB"
    assert await pool.files.of("joe") == [
        FilesQuota("results", 0, GIB),
        FilesQuota("checkpoints", 0, 2 * GIB),
    ]


async def test_files_of_unfinished_job_are_counted_and_kept(
    pool: Pool, clock: LeapingClock
) -> None:
    await one_that_leaves(pool, checkpoints=4096)  # discarding this alone would not be enough
    text = WRITES.format(results=0, checkpoints=2 * GIB) + STAYS
    job = await pool.jobs.submit(SUSAN, replace(python_job(text), name="stays"))
    await reached(pool, job.id, State.RUNNING)
    assert await pool.runtime.wait_log(WorkerId(job.id, 1, 0), 0, 30)
    clock.pass_s(GOOD_S + 1)
    with pytest.raises(TooLarge) as refused:
        await pool.jobs.submit(SUSAN, sleeper())
    assert (
        f"Of the jobs that have not ended, {job.id[:8]} (stays) holds most, 2.0 GiB: cancel it "
        "or wait until it has ended, save the files that you need, then `benchpool discard "
        f"{job.id[:8]} --checkpoints` deletes them for good."
    ) in refused.value.message
    with pytest.raises(Refused, match="is running and needs its files: cancel it first"):
        await pool.files.discard(SUSAN, job.id, JobDiscard(checkpoints=True))
    with pytest.raises(InvalidInput, match="results, checkpoints or logs"):
        await pool.files.discard(SUSAN, job.id, JobDiscard())
    with pytest.raises(NotFound):
        await pool.files.discard(JOE, job.id, JobDiscard(checkpoints=True))
    await pool.jobs.act(SUSAN, job.id, "cancel")
    await reached(pool, job.id, State.CANCELLED)
    with pytest.raises(TooLarge, match="Of the ended jobs, "):
        await pool.jobs.submit(SUSAN, sleeper())
    await pool.files.discard(SUSAN, job.id, JobDiscard(checkpoints=True))
    await pool.jobs.submit(SUSAN, sleeper())


@pytest.fixture
async def carriers(pool: Pool) -> AsyncIterator[str]:
    """Yield the URL to which cluster agents upload the saved files of a job."""
    folders = Folders(pool.observed.settings.state)
    agent_api = AgentApi(folders, lambda _: None, ended=lambda _: False, log_bytes=1)
    agents = Agents(agent_api, TOKENS, Bundle(), 8 * 2**20)
    server = HTTPServer(Application(workers.rules(agents, "/")), max_body_size=8 * 2**20)
    (listening,) = bind_sockets(0, "127.0.0.1", socket.AF_INET)
    server.add_sockets([listening])
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/workers"
    server.stop()
    await server.close_all_connections()


@pytest.mark.parametrize("part", ["checkpoints", "results"])
async def test_files_uploaded_by_cluster_agents_are_limited(
    pool: Pool,
    clock: LeapingClock,
    carriers: str,
    part: Part,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_file_quota, "GIB", 2**20)  # a body of gigabytes takes minutes
    job = await one_that_leaves(pool)
    worker, what = WorkerId(job, 1, 0), part.removesuffix("s") if part == "checkpoints" else part
    most = 2 if part == "checkpoints" else 1
    bearer = {"Authorization": f"Bearer {TOKENS.of(worker)}"}
    address = f"{carriers}/{job}/1/0/{what}"
    async with httpx.AsyncClient(trust_env=False, timeout=60, headers=bearer) as agent:
        assert (await agent.put(address, content=bytes(most * 2**20 - 8192))).status_code == 200
        await pool.jobs.submit(SUSAN, sleeper())
        assert (await agent.put(address, content=bytes(most * 2**20 + 1))).status_code == 200
    clock.pass_s(GOOD_S + 1)
    with pytest.raises(TooLarge) as refused:
        await pool.jobs.submit(SUSAN, sleeper())
    assert refused.value.code == f"{part}-full"
    assert f"benchpool discard {job[:8]} --{part}" in refused.value.message
    assert f"budgets.{part}_gib" in refused.value.message
    await pool.jobs.submit(JOE, sleeper())
    await pool.files.discard(SUSAN, job, JobDiscard(**{part: True}))
    assert not list((pool.observed.settings.state / "jobs" / job).glob("carried/*.tar"))
    await pool.jobs.submit(SUSAN, sleeper())


async def test_files_without_limit_are_not_counted(tmp_path: Path) -> None:
    async with opened(make_pool(tmp_path, configuration=story(STORY))) as pool:
        await one_that_leaves(pool, results=GIB)
        await one_that_leaves(pool)
        assert await pool.files.of("susan") == []
        assert files_held([]) == ""


def test_file_limit_change_is_reported() -> None:
    assert compare(load(STORY), load(STORY + BOUNDS)) == [
        "Budget of each user: results_gib no limit → 1.",
        "Budget of each user: checkpoints_gib no limit → 2.",
    ]
