"""Requests of this server to the scheduler about its bench. Failed reports are retried later."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchpool.server.pool_access import PoolAccess
from benchpool_scheduler.contract.idle_benches import BenchActivity, BenchIdleness
from benchpool_scheduler.errors import BenchpoolError, NotFound

ANSWER_S = 10.0
ABSENT_S = 300.0
"""Interval at which a server without a bench checks for one, in seconds."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class SchedulerLink:
    """Reports of one notebook server, and the last answer.

    Attributes:
        user: Owner of the server.
        server: Name of the server.
        wanted: False outside a Hub.
        answer: State of the bench; None if there is none, or the scheduler did not answer.
    """

    pool: PoolAccess
    user: str
    server: str
    wanted: bool
    clock: Callable[[], float] = time.monotonic
    answer: BenchIdleness | None = None
    _lease: str | None = None
    _absent_at: float | None = None

    @classmethod
    def of(cls, pool: PoolAccess, environ: Mapping[str, str]) -> SchedulerLink:
        """Return the link of a server with this environment."""
        user, server = environ.get("JUPYTERHUB_USER", ""), environ.get("JUPYTERHUB_SERVER_NAME", "")
        return cls(pool, user, server, wanted="JUPYTERHUB_API_TOKEN" in environ and bool(user))

    async def report(self, activity: BenchActivity) -> BenchIdleness | None:
        """Report the activity; return the answer, or None."""
        try:
            lease = await self._find()
            self.answer = None if lease is None else await self._reported(lease, activity)
        except NotFound:  # it has ended, or the scheduler has no such route
            self._lease, self.answer, self._absent_at = None, None, self.clock()
        except BenchpoolError as failed:
            self.answer = None
            log.info("bench activity not reported: %s", failed)
        return self.answer

    async def keep(self) -> None:
        """Keep the bench for a while. Raises the scheduler's errors."""
        lease = await self._known()
        self.answer = await self.pool.ask(lambda pool: pool.keep_bench(lease), ANSWER_S)

    async def release(self) -> None:
        """Request the release of the GPUs. Raises the scheduler's errors."""
        lease = await self._known()
        self.answer = await self.pool.ask(lambda pool: pool.release_bench(lease), ANSWER_S)

    async def released(self) -> bool:
        """Report that no process uses the GPUs; return whether the scheduler has received them."""
        try:
            lease = await self._known()
            await self.pool.ask(lambda pool: pool.released_bench(lease), ANSWER_S)
        except NotFound:
            pass  # it has ended already
        except BenchpoolError as failed:
            log.info("release of the GPUs not reported: %s", failed)
            return False
        self._lease = self.answer = None
        return True

    async def _reported(self, lease: str, activity: BenchActivity) -> BenchIdleness:
        return await self.pool.ask(
            lambda pool: pool.report_bench_activity(lease, activity), ANSWER_S
        )

    async def _known(self) -> str:
        lease = await self._find()
        if lease is None:
            raise NotFound("This server holds no GPU.", code="no-bench")
        return lease

    async def _find(self) -> str | None:
        """Return the lease of this server, or None."""
        if self._lease is None and not self._was_absent():
            benches = await self.pool.ask(lambda pool: pool.benches(), ANSWER_S)
            mine = (it for it in benches if (it.user, it.server) == (self.user, self.server))
            found = next(mine, None)
            self._lease = None if found is None else found.lease
            self._absent_at = self.clock() if found is None else None
        return self._lease

    def _was_absent(self) -> bool:
        return self._absent_at is not None and self.clock() - self._absent_at < ABSENT_S
