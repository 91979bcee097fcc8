"""How true the estimates of starts are in this pool, as a page for everybody."""

from __future__ import annotations

from benchpool_scheduler import phrases
from benchpool_scheduler.web.pages import PageHandler


class EstimatesHandler(PageHandler):
    """``GET <prefix>estimates``: of the newest starts, how many fell into what was said."""

    async def get(self) -> None:
        """Show the page."""
        await self.reader()
        found = self.site.pool.estimates.accuracy()
        await self.show(
            "estimates.html",
            self.facts(),
            wanted=phrases.percent(found.wanted),
            starts=sum(it.starts for it in found.horizons),
            rows=[
                phrases.horizon_row(it.up_to_s, it.starts, it.inside, it.before, it.after)
                for it in found.horizons
            ],
        )
