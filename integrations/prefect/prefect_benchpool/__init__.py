"""Jobs of a benchpool in Prefect: a task that sends one and waits for its end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from prefect import task
from prefect.blocks.core import Block
from prefect.context import TaskRunContext
from prefect.logging import get_run_logger
from pydantic import SecretStr

from benchpool_scheduler.client import Client, discover, following, steps
from benchpool_scheduler.contract import Job, LogText

PATIENCE_S = 120.0
"""Timeout for a restarting pool, in seconds."""

__all__ = ["BenchpoolCredentials", "JobNotSucceeded", "run_job"]


class JobNotSucceeded(Exception):
    """A job failed or was cancelled: its reason, and the end of its log."""


class BenchpoolCredentials(Block):  # type: ignore[misc]
    """A pool's address and a token of the Hub; missing values come from the environment.

    Attributes:
        url: Such as ``https://hub.example.org/services/benchpool``, else ``BENCHPOOL_URL``.
        token: Else ``BENCHPOOL_TOKEN``.
    """

    _block_type_name = "benchpool"
    _block_type_slug = "benchpool"

    url: str | None = None
    token: SecretStr | None = None

    def get_client(self) -> Client:
        """Return a client of the pool."""
        token = None if self.token is None else self.token.get_secret_value()
        return Client(discover(os.environ, url=self.url, token=token), patience_s=PATIENCE_S)


@task(name="benchpool job")  # type: ignore[untyped-decorator]
def run_job(
    command: str | Sequence[str],
    *,
    folder: str | None = None,
    output_dir: str | None = None,
    options: Mapping[str, Any] | None = None,
    credentials: BenchpoolCredentials | None = None,
) -> dict[str, Any]:
    """Send a job, wait for its end, and return its ID, state, page and the location of its results.

    The same try of the same task is one job. Cancelling the flow ends the job.

    Args:
        command: Command as a list of words, or a text that is split as a shell does. ``train.py``
            is a script of the folder.
        folder: A folder; the job runs in a copy of its files.
        output_dir: Target folder for results: an absolute path that the pool sees.
        options: As in ``benchpool.submit``: ``{"gpus": 2}``.
        credentials: Address of the pool, and token.

    Errors: JobNotSucceeded; those of ``benchpool_scheduler.errors``.
    """
    step = steps.WorkflowStep(command, _key(), folder, output_dir, options or {})
    with (credentials or BenchpoolCredentials()).get_client() as pool:
        job = _ended(pool, steps.send(pool, step))
        if (why := steps.why_not(pool, job)) is not None:
            raise JobNotSucceeded(why)
    return steps.result_of(job, output_dir)


def _ended(pool: Client, job: Job) -> Job:
    """Follow a job to its end; if this task ends earlier, cancel the job."""
    log = get_run_logger()
    log.info("%s %s: project %s, %s", job.id[:8], job.name, job.project, job.url)
    try:
        for each in following.follow(pool, job.id):
            if isinstance(each, LogText):
                log.info("%s", each.text.rstrip("\n"))
            elif each.reason is not None and following.waits(each):
                log.info("%s waits: %s", job.id[:8], each.reason.text)
        return pool.wait(job.id)
    except BaseException:
        steps.cancel(pool, job.id, "Its task in Prefect was stopped.")
        raise


def _key() -> str:
    context = TaskRunContext.get()
    if context is None:
        raise RuntimeError("run_job is a task. Call it in a flow.")
    return steps.key_of("prefect", str(context.task_run.id), context.task_run.run_count)
