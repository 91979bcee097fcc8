"""The pool at a glance: what an administrator looks at first."""

from __future__ import annotations

from benchpool_scheduler.web import fleet_view, report_view
from benchpool_scheduler.web.pages import PageHandler


class FleetHandler(PageHandler):
    """``GET <prefix>fleet``: now, the last day, and the last hour of every GPU."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        pool, now = self.site.pool, self.site.now()
        uses = pool.gpu_use.gpus(caller)
        status = pool.views.status(caller)
        day = await pool.use.fleet.day()
        grid = await pool.use.fleet.grid(caller)
        await self.show(
            "fleet.html",
            self.facts(back="fleet"),
            status=status,
            strip=fleet_view.now_view(status, uses),
            day=day,
            hours=fleet_view.columns(day),
            day_rows=fleet_view.hour_rows(day),
            classes=report_view.classes(day.total),
            computed=fleet_view.computed(day),
            grid=fleet_view.grid_view(grid, uses, now),
        )
