"""What is mine: a researcher's first look."""

from __future__ import annotations

import asyncio

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import GpuState, State
from benchpool_scheduler.web import mine_view
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.words import moment

MINUTE_S, HOUR_S = 60, 3600
MOST = 50
"""So many of the reader's jobs are shown."""


class MineHandler(PageHandler):
    """``GET <prefix>mine``: the reader's quotas, what is free, jobs and benches."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        pool, now = self.site.pool, self.site.now()
        quota = pool.views.quota(caller)
        free = pool.views.counts().get(GpuState.FREE, 0)
        uses = pool.gpu_use.gpus(caller, mine=True)
        end = int(self.site.clock.now()) // MINUTE_S * MINUTE_S + MINUTE_S
        begin = end - HOUR_S
        await pool.metering.settle()
        past = await asyncio.to_thread(
            pool.use.telemetry.buckets,
            {use.uuid for use in uses},
            begin,
            end,
            HOUR_S // MINUTE_S,
            by_holder=True,
        )
        jobs = {
            job.id: job
            for state in (State.STARTING, State.RUNNING, State.PAUSING)
            for job in pool.jobs.select(caller, state=state, limit=MOST)
        }
        waiting = pool.jobs.select(caller, state=State.QUEUED, limit=MOST)
        await self.show(
            "mine.html",
            self.facts(back="mine"),
            quota=quota,
            held=sum(len(one.gpus) for one in quota.build.held),
            projects=mine_view.project_cards(quota.projects, free),
            free=phrases.count(free, "GPU"),
            holdings=mine_view.holdings(uses, jobs, past, begin, end, now),
            simulated=any(use.simulated for use in uses),
            waiting=[
                (job, moment(job.submitted, now), phrases.start_range(job.estimated_start, now))
                for job in waiting
            ],
            size=(mine_view.WIDTH, mine_view.HEIGHT),
        )
