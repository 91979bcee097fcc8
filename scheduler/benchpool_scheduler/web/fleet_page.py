"""The overview page of the pool for administrators."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import State, Status
from benchpool_scheduler.contract.gpu_use import GpuUse
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web import fleet_view, fleet_waste, health_page, report_view
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.parked_view import parked_rows

NEWEST = 8
"""Number of preemptions and driver errors that are shown."""

DAY_S = 24 * 3600.0
MOST_WAITING = 5000


class FleetHandler(PageHandler):
    """``GET <prefix>fleet``: now, the last day, and the last hour of every GPU."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        pool = self.site.pool
        uses, status = pool.gpu_use.gpus(caller), pool.views.status(caller)
        watched: dict[str, object] = {}
        if caller.admin:
            watched = await self._watched(caller, status, uses)
        await self.show(
            "fleet.html",
            self.facts(back="fleet"),
            **await self._pictures(status, uses, caller),
            watched=watched,
        )

    async def _pictures(
        self, status: Status, uses: Sequence[GpuUse], named_to: Caller | None
    ) -> dict[str, object]:
        """Return the charts for all users; with names that ``named_to`` may see, none for None."""
        fleet = self.site.pool.use.fleet
        day, grid = await fleet.day(), await fleet.grid(named_to)
        return {
            "status": status,
            "strip": fleet_view.now_view(status, uses),
            "day": day,
            "hours": fleet_view.columns(day),
            "day_rows": fleet_view.hour_rows(day),
            "classes": report_view.classes(day.total),
            "computed": fleet_view.computed(day),
            "grid": fleet_view.grid_view(grid, uses, self.site.now()),
        }

    async def _watched(
        self, caller: Caller, status: Status, uses: Sequence[GpuUse]
    ) -> dict[str, object]:
        """Return the tables for administrators."""
        pool, now = self.site.pool, self.site.now()
        week = await pool.use.fleet.week(caller)
        queued = pool.jobs.select(caller, all=True, state=State.QUEUED, limit=MOST_WAITING)
        # Jobs that wait for other jobs request no GPU yet.
        waiting = [job for job in queued if job.in_line_since is not None]
        paid, preemptions = pool.use.fleet.preemptions(caller, NEWEST)
        sort = self.get_query_argument("sort", "waste")
        at = self.site.clock.now()
        xids = await asyncio.to_thread(pool.use.telemetry.xids, at - DAY_S, at, NEWEST)
        return {
            "sort": sort if sort in fleet_waste.SORTS else "waste",
            "waste": fleet_waste.waste_rows(status.projects, week.rows, waiting, now, sort),
            "bench_waste": fleet_waste.idle_hours(week.total),
            "week": fleet_view.week_rows(week.hours),
            "starved": fleet_waste.starved_view(status.projects, waiting, now),
            "idle": fleet_waste.idle_benches(
                pool.benches.leases(caller),
                uses,
                status.gpus,
                {one.lease: one for one in pool.idle.list(caller)},
                now,
            ),
            "parked": parked_rows(pool.reservations.parking.seen_by(caller), status.gpus, now),
            "paid": fleet_waste.paid_rows(paid, now),
            "preemptions": preemptions,
            "health": health_page.lines_of(pool, status.gpus),
            "xids": fleet_waste.xid_rows(xids, status.gpus, now),
        }


class KioskHandler(FleetHandler):
    """``GET <prefix>kiosk``: the same for a wall screen, without user names."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        pool = self.site.pool
        uses = [
            replace(one, user=None, project=None, job=None, server=None)
            for one in pool.gpu_use.gpus(caller)
        ]
        status = pool.views.status(caller)
        wrong = len(status.health.problems)
        await self.show(
            "kiosk.html",
            self.facts(back="kiosk"),
            **await self._pictures(status, uses, None),
            wrong=f"{phrases.count(wrong, 'problem')} for administrators" if wrong else "",
        )
