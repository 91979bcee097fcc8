"""Jobs of a benchpool in Dagster: a client of Dagster Pipes.

Reports by ``dagster_pipes`` come over the job's log, so no shared folder is needed. A job without
Dagster code runs as well: its log is shown, and its end counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dagster import (
    AssetExecutionContext,
    Failure,
    MetadataValue,
    OpExecutionContext,
    PipesClient,
    PipesClientCompletedInvocation,
    PipesEnvContextInjector,
    PipesMessageHandler,
    PipesMessageReader,
    open_pipes_session,
)
from dagster._core.definitions.resource_annotation import TreatAsResourceParam
from dagster._core.pipes.utils import extract_message_or_forward_to_stdout

from benchpool_scheduler.client import Client, Credentials, discover, following, steps
from benchpool_scheduler.contract import Job, LogText
from benchpool_scheduler.errors import BenchpoolError

PATIENCE_S = 120.0
"""Timeout for a restarting pool, in seconds."""

__all__ = ["PipesBenchpoolClient"]


class PipesBenchpoolClient(PipesClient, TreatAsResourceParam):  # type: ignore[misc]
    """Client that runs jobs of a pool and passes their reports to Dagster.

    Args:
        url, token: The pool's address and a token of the Hub; by default from the environment
            (``BENCHPOOL_URL``, ``BENCHPOOL_TOKEN``).
    """

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self._url = url
        self._token = token

    def run(
        self,
        *,
        context: OpExecutionContext | AssetExecutionContext,
        extras: Mapping[str, Any] | None = None,
        command: str | Sequence[str],
        folder: str | None = None,
        output_dir: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> PipesClientCompletedInvocation:
        """Send a job, follow it to its end, and raise if it did not succeed.

        The same try of the same step is one job. When the run is terminated, the job is cancelled.

        Args:
            command: Command as a list of words, or a text that is split as a shell does.
            ``train.py``
                is a script of the folder.
            folder: A folder; the job runs in a copy of its files.
            output_dir: Target folder for results: an absolute path that the pool sees.
            options: As in ``benchpool.submit``: ``{"gpus": 2}``.

        Errors: dagster.Failure with the job's reason and the end of its log.
        """
        log = _LogOfTheJob()
        asked = dict(options or {})
        key = key_of(context, command, asked)
        with (
            open_pipes_session(
                context=context,
                context_injector=PipesEnvContextInjector(),
                message_reader=log,
                extras=extras,
            ) as session,
            Client(self._credentials(), patience_s=PATIENCE_S, on_wait=context.log.info) as pool,
        ):
            asked["env"] = {**asked.get("env", {}), **session.get_bootstrap_env_vars()}
            step = steps.WorkflowStep(command, key, folder, output_dir, asked)
            try:
                job = _ended(pool, steps.send(pool, step), context, log)
                why = steps.why_not(pool, job)
            except BenchpoolError as failed:
                raise Failure(failed.message) from failed
            if why is not None:
                raise Failure(why, metadata={"job": MetadataValue.text(job.id)})
            result = steps.result_of(job, output_dir)
        metadata = {name: value for name, value in result.items() if value is not None}
        return PipesClientCompletedInvocation(session, metadata=metadata)

    def _credentials(self) -> Credentials:
        return discover(os.environ, url=self._url, token=self._token)


class _LogOfTheJob(PipesMessageReader):  # type: ignore[misc]
    """Message reader that extracts the job's messages from its log."""

    def __init__(self) -> None:
        self._handler: PipesMessageHandler | None = None
        self._rest = ""

    @contextmanager
    def read_messages(self, handler: PipesMessageHandler) -> Iterator[dict[str, str]]:
        """Yield parameters that make the job write its messages to its log."""
        self._handler = handler
        yield {"stdio": "stdout"}

    def read(self, text: str) -> None:
        """Read a part of the log: messages go to Dagster, everything else is printed."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            extract_message_or_forward_to_stdout(self._handler, line)

    def end(self) -> None:
        """Read the rest of the log after its last line feed."""
        if self._rest:
            self.read("\n")

    def no_messages_debug_text(self) -> str:
        """Return where messages are expected."""
        return "Messages were expected in the log of the job."


def _ended(
    pool: Client, job: Job, context: OpExecutionContext | AssetExecutionContext, log: _LogOfTheJob
) -> Job:
    """Follow a job to its end; if this step ends earlier, cancel the job."""
    context.log.info(f"{job.id[:8]} {job.name}: project {job.project}, {job.url}")
    try:
        for each in following.follow(pool, job.id):
            if isinstance(each, LogText):
                log.read(each.text)
            elif each.reason is not None and following.waits(each):
                context.log.info(f"{job.id[:8]} waits: {each.reason.text}")
        log.end()
        return pool.wait(job.id)
    except BaseException:
        steps.cancel(pool, job.id, "Its step in Dagster was stopped.")
        raise


def key_of(
    context: OpExecutionContext | AssetExecutionContext,
    command: str | Sequence[str],
    options: Mapping[str, Any],
) -> str:
    """Return the key of a submission; one try of a step may make several, each once."""
    op = context.op_execution_context if hasattr(context, "op_execution_context") else context
    step = op.get_step_execution_context().step.key
    what = json.dumps([command, options], sort_keys=True, default=str)
    return steps.key_of("dagster", op.run_id, step, op.retry_number, what)
