"""Trigger that waits for the end of a job without holding a worker of Airflow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_benchpool.hooks import BenchpoolHook
from benchpool_scheduler.errors import BenchpoolError, NotFound, Unavailable

AGAIN_S = 10.0
"""Retry delay when the pool is unavailable for longer than the client's timeout, in seconds."""


class BenchpoolJobTrigger(BaseTrigger):  # type: ignore[misc]
    """Trigger that fires when a job has ended, or after a timeout.

    Args:
        job: Job ID.
        timeout_s: Timeout in seconds; None waits to the end.
        cancels: Whether killing the task ends the job too.
    """

    def __init__(
        self,
        job: str,
        benchpool_conn_id: str,
        timeout_s: float | None = None,
        cancels: bool = True,
    ) -> None:
        super().__init__()
        self.job = job
        self.benchpool_conn_id = benchpool_conn_id
        self.timeout_s = timeout_s
        self.cancels = cancels

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments from which the triggerer rebuilds it."""
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            "job": self.job,
            "benchpool_conn_id": self.benchpool_conn_id,
            "timeout_s": self.timeout_s,
            "cancels": self.cancels,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the job's end, an error, or the timeout."""
        self.log.info("Waiting for the end of job %s", self.job[:8])
        yield TriggerEvent({"job": self.job, **await self._outcome()})

    async def _outcome(self) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self.timeout_s):
                return {"state": await self._ended()}
        except TimeoutError:
            return {"late": True}
        except BenchpoolError as failed:
            return {"failed": failed.message}

    async def on_kill(self) -> None:
        """End the job of a task that was marked failed or succeeded, or was cleared."""
        if self.cancels:
            async with await BenchpoolHook(self.benchpool_conn_id).async_client() as pool:
                await pool.cancel(self.job, "Its task in Airflow was stopped.")

    async def _ended(self) -> str:
        while True:
            try:
                async with await BenchpoolHook(self.benchpool_conn_id).async_client() as pool:
                    return (await pool.wait(self.job)).state.value
            except Unavailable as away:
                self.log.warning("%s Retrying.", away.message)
                await asyncio.sleep(AGAIN_S)
            except NotFound as gone:
                raise NotFound(f"Job {self.job[:8]} no longer exists.") from gone
