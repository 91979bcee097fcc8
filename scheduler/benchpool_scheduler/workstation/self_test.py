"""The self-test of a start: one small job runs through API, pool and runtime."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from benchpool_scheduler.client import AsyncClient
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract import CommandEntry, JobSubmission, Source
from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.errors import BenchpoolError

TIMEOUT_S = 60.0
LIMIT_S = 30
"""Time limit of the job, in seconds: the maximum for a self-test."""
_PROGRAM = "import os; print('GPU', os.environ['CUDA_VISIBLE_DEVICES'])"


async def run(client: AsyncClient, configuration: Configuration, user: str) -> dict[str, Any]:
    """Submit a job of one GPU and wait for its end; return ``job``, ``state`` and ``seconds``.

    The test is skipped, with the reason in ``text``, if the job would have to wait or to preempt
    another job: the test must not disturb running jobs.
    """
    began = time.monotonic()
    submission = _submission(_project(configuration, user))
    job: str | None = None
    try:
        preview = await client.preview(submission)
        if preview.starts != "now":
            return {"job": None, "state": "skipped", "seconds": 0.0, "text": preview.text}
        job = (await client.submit(submission)).id
        async with asyncio.timeout(TIMEOUT_S):
            state = (await client.wait(job)).state.value
    except TimeoutError:
        latest = (await client.job(job)).job if job else None
        text = latest.reason.text if latest and latest.reason else f"no end after {TIMEOUT_S:.0f} s"
        return {"job": job, "state": latest.state.value if latest else "unknown",
                "seconds": _since(began), "text": text}  # fmt: skip
    except BenchpoolError as error:
        return {"job": job, "state": "refused", "seconds": _since(began), "text": error.message}
    return {"job": job, "state": state, "seconds": _since(began)}


def _submission(project: str | None) -> JobSubmission:
    return JobSubmission(
        entry=CommandEntry(argv=[sys.executable, "-c", _PROGRAM]),
        name="self-test",
        tags=(SELF_TEST,),
        project=project,
        gpus=1,
        time_limit_s=LIMIT_S,
        source=Source(kind="self-test"),
    )


def _project(configuration: Configuration, user: str) -> str | None:
    """Return a project for the test: one of the user's own, else the first that accepts jobs."""
    leaves = [one for one in configuration.projects if not configuration.is_parent(one.name)]
    own = [one.name for one in leaves if user in one.members or user in one.leads]
    return next(iter(own or [one.name for one in leaves]), None)


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)
