"""The reader's own page: a researcher's overview."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import GpuState, Lease, State
from benchpool_scheduler.contract.gpu_use import GpuUse
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service import Caller
from benchpool_scheduler.service.views.used_so_far import UsedSoFar
from benchpool_scheduler.telemetry import ActivityBucket
from benchpool_scheduler.web import mine_view
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.parked_view import ParkedRow, parked_rows
from benchpool_scheduler.web.words import moment

MINUTE_S, HOUR_S = 60, 3600
MOST = 50
"""Maximum number of the reader's jobs that are shown."""


class MineHandler(PageHandler):
    """``GET <prefix>mine``: the reader's quotas, free GPUs, jobs and benches."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        pool, now = self.site.pool, self.site.now()
        quota = pool.views.quota(caller)
        counts = pool.views.counts()
        free = counts.get(GpuState.FREE, 0)
        borrowed = counts.get(GpuState.TRAIN_OVER_QUOTA, 0)
        room = mine_view.PoolRoom(free, borrowed, pool.observed.now.configuration.policy.grace_s)
        uses = pool.gpu_use.gpus(caller, mine=True)
        end = int(self.site.clock.now()) // MINUTE_S * MINUTE_S + MINUTE_S
        begin = end - HOUR_S
        await pool.metering.settle()
        jobs = {
            job.id: job
            for state in (State.STARTING, State.RUNNING, State.PAUSING)
            for job in pool.jobs.select(caller, state=state, limit=MOST)
        }
        waiting = pool.jobs.select(caller, state=State.QUEUED, limit=MOST)
        benches = [one for one in pool.benches.leases(caller) if one.user == caller.name]
        past, used, unread = await self._recorded(uses, (begin, end), benches)
        await self.show(
            "mine.html",
            self.facts(back="mine"),
            quota=quota,
            held=sum(len(one.gpus) for one in quota.build.held),
            projects=mine_view.project_cards(quota.projects, room),
            free=phrases.count(free, "GPU"),
            holdings=mine_view.holdings(
                uses, jobs, past, (begin, end), now, self._so_far(benches, used)
            ),
            unread=unread,
            parked=self._parked(caller),
            simulated=any(use.simulated for use in uses),
            waiting=[
                (job, moment(job.submitted, now), phrases.start_range(job.estimated_start, now))
                for job in waiting
            ],
            size=(mine_view.WIDTH, mine_view.HEIGHT),
        )

    async def _recorded(
        self, uses: Sequence[GpuUse], span: tuple[int, int], benches: Sequence[Lease]
    ) -> tuple[Sequence[ActivityBucket], Mapping[str, UsedSoFar], str]:
        """Return the last hour, the use so far, and why neither can be read now (else empty)."""
        use = self.site.pool.use
        begin, end = span
        try:
            past = await asyncio.to_thread(
                use.telemetry.buckets,
                {one.uuid for one in uses},
                begin,
                end,
                HOUR_S // MINUTE_S,
                by_holder=True,
            )
            jobs = {one.job for one in uses if one.job is not None}
            return past, await use.so_far.read(jobs, benches), ""
        except Unavailable as away:
            return (), {}, away.message

    def _parked(self, caller: Caller) -> Sequence[ParkedRow]:
        """Return the reader's parked benches."""
        pool = self.site.pool
        seen = pool.reservations.parking.seen_by(caller)
        own = [one for one in seen if one.user == caller.name]
        return parked_rows(own, pool.views.status(caller).gpus, self.site.now()) if own else ()

    def _so_far(self, benches: Sequence[Lease], used: Mapping[str, UsedSoFar]) -> Mapping[str, str]:
        """Return the use so far by each job, and by each bench with its server, in words."""
        currency = self.site.pool.observed.now.configuration.prices.currency
        names = {lease.id: f"bench-{lease.server}" for lease in benches}
        return {names.get(of, of): mine_view.so_far(one, currency) for of, one in used.items()}
