"""Pools for tests: real store, real or scripted workers, and waiting without sleeping."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from benchpool_scheduler.configuration import Configuration, load
from benchpool_scheduler.contract import CommandEntry, Job, JobSubmission, Reason, State
from benchpool_scheduler.hub import Directory, StaticDirectory
from benchpool_scheduler.runtime import Runtime
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_scheduler.service import Caller, Clock, Pool, allowed_environment
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_support.scripted import ScriptedRuntime
from benchpool_support.waiting import PATIENCE_S

SUSAN = Caller("susan")
JOE = Caller("joe")
JEMMA = Caller("jemma")
ADMIN = Caller("ada", admin=True)
HUB = Caller("jupyterhub", kind="service")

STORY = """
version: 1
build: {users: {susan: 1, joe: 1, jemma: 1}}
projects:
  - {name: research, quota: 6}
  - {name: susan, parent: research, quota: 2, members: [susan]}
  - {name: joe, parent: research, quota: 2, members: [joe]}
  - {name: jemma, parent: research, quota: 2, members: [jemma]}
policy: {grace_s: 20}
"""
"""Nine GPUs: a bench GPU for each of three users, and six in the pool, two for each user."""


def story(text: str = STORY) -> Configuration:
    """Return a configuration, by default ``STORY``."""
    return load(text, "benchpool.yaml")


def make_pool(
    state: Path,
    *,
    configuration: Configuration | None = None,
    runtime: Runtime | None = None,
    gpus: int = 9,
    directory: Directory | None = None,
    clock: Clock | None = None,
    **more: Any,
) -> Pool:
    """Return a pool that is not open yet, by default with real processes and simulated GPUs."""
    if isinstance(runtime, ScriptedRuntime):
        runtime.by_the_wall = clock is None
    return Pool(
        SqliteStore(state / "scheduler"),
        LocalRuntime(state, simulated(gpus)) if runtime is None else runtime,
        story() if configuration is None else configuration,
        state=state,
        directory=StaticDirectory() if directory is None else directory,
        clock=clock,
        environment=allowed_environment(os.environ),
        base_url="http://pool.test/services/benchpool",
        **more,
    )


@contextlib.asynccontextmanager
async def opened(pool: Pool) -> AsyncIterator[Pool]:
    """Open a pool and close it; cancel its jobs before, so that no process is left."""
    await pool.open()
    try:
        yield pool
    finally:
        if isinstance(pool.runtime, LocalRuntime):
            async with asyncio.timeout(PATIENCE_S):
                await cancel_everything(pool)
        await pool.close()


async def cancel_everything(pool: Pool) -> None:
    """Cancel all jobs and wait until they have ended."""
    for job in pool.jobs.select(ADMIN, all=True):
        if job.ended is None:
            await pool.jobs.act(ADMIN, job.id, "cancel")
    for job in pool.jobs.select(ADMIN, all=True):
        await until_job(pool, job.id, lambda now: now.ended is not None)


def python_job(code: str, **more: Any) -> JobSubmission:
    """Return a job that runs a small Python program."""
    return JobSubmission(entry=CommandEntry([sys.executable, "-u", "-c", code]), **more)


def sleeper(**more: Any) -> JobSubmission:
    """Return a job that runs until it is stopped."""
    return JobSubmission(entry=CommandEntry(["sleep", "1000"]), **more)


async def until_job(pool: Pool, job: str, holds: Callable[[Job], bool]) -> Job:
    """Wait until a condition holds for a job, and return the job at that moment."""
    async with asyncio.timeout(PATIENCE_S):
        now = pool.jobs.detail(ADMIN, job).job
        if holds(now):
            return now
        async with contextlib.aclosing(pool.events.follow(ADMIN)) as events:
            async for _ in events:
                now = pool.jobs.detail(ADMIN, job).job
                if holds(now):
                    return now
    raise AssertionError(f"the pool was closed; the job is {now}")


async def reached(pool: Pool, job: str, *states: State) -> Job:
    """Wait until a job is in one of these states."""
    return await until_job(pool, job, lambda now: now.state in states)


async def waiting(pool: Pool, job: str) -> Reason:
    """Wait until a pass has found the reason of a queued job, and return the reason."""
    found = await until_job(pool, job, lambda now: of_a_pass(now.reason))
    assert found.reason is not None
    return found.reason


def of_a_pass(reason: Reason | None) -> bool:
    """Return whether a pass has found this reason; before that, the reason is ``next-pass``."""
    return reason is not None and reason.code != "next-pass"


async def decided(pool: Pool, job: str) -> Job:
    """Wait until a pass has decided about a queued job."""
    return await until_job(
        pool, job, lambda now: now.reason is None or now.reason.code != "next-pass"
    )
