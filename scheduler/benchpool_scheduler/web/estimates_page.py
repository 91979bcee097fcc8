"""The page on the accuracy of this pool's start estimates, for all users."""

from __future__ import annotations

from benchpool_scheduler import phrases
from benchpool_scheduler.web.pages import PageHandler


class EstimatesHandler(PageHandler):
    """``GET <prefix>estimates``: how many of the newest starts fell into their estimates."""

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
