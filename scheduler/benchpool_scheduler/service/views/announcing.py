"""Publication of wait reasons outside the service, at a limited rate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from benchpool_scheduler import contract
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.service.execution.passes import PassNews
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.views.job_views import JobViews

log = logging.getLogger(__name__)

Announce = Callable[[Sequence[contract.Job]], None]

PACE_S = 0.2
AT_ONCE = 200
"""Maximum number of jobs that are processed before other tasks of the loop run."""


class Announcer:
    """Calls ``announce`` with waiting jobs whose reason is new; without it, does nothing."""

    def __init__(self, ledger: Ledger, views: JobViews, announce: Announce | None) -> None:
        self._ledger = ledger
        self._views = views
        self._announce = announce
        self._changed: dict[str, None] = {}
        self._wanted = asyncio.Event()

    def pass_made(self, news: PassNews) -> None:
        """Record jobs whose reason is new."""
        if self._announce is not None and news.jobs:
            self._changed.update(dict.fromkeys(news.jobs))
            self._wanted.set()

    async def run(self) -> None:
        """Publish reasons until cancelled."""
        while self._announce is not None:
            await self._wanted.wait()
            self._wanted.clear()
            changed, self._changed = list(self._changed), {}
            for first in range(0, len(changed), AT_ONCE):
                self._publish(self._announce, changed[first : first + AT_ONCE])
                await asyncio.sleep(0)
            await asyncio.sleep(PACE_S)

    def _publish(self, announce: Announce, jobs: Sequence[str]) -> None:
        records = filter(None, map(self._ledger.job, jobs))
        waiting = [self._views.job(it, None) for it in records if it.state is JobState.QUEUED]
        try:
            announce(waiting)
        except Exception:
            log.exception("the reasons of %d jobs could not be published", len(waiting))
