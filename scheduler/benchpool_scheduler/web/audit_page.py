"""The audit trail as a page, for administrators."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from benchpool_scheduler import phrases
from benchpool_scheduler.api import decoding
from benchpool_scheduler.contract import AuditPage, AuditQuery, AuditRecord
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.words import Moment, moment

CHOICES = ("actor", "action", "target", "outcome")
"""What a reader may choose by, as fields of ``AuditQuery``."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One record as the page shows it; ``what`` says what it changed, or why not."""

    record: AuditRecord
    at: Moment
    what: str


class AuditHandler(PageHandler):
    """``GET <prefix>audit``: who did what, the newest first."""

    async def get(self) -> None:
        """Show the page. Errors: Forbidden for others than administrators."""
        caller = await self.reader()
        chosen = {name: self.get_query_argument(name, "").strip() for name in CHOICES}
        chosen = {name: value for name, value in chosen.items() if value}
        below = self.get_query_argument("below", "")
        asked = {**chosen, **({"below": below} if below else {})}
        query = decoding.query({name: [value] for name, value in asked.items()}, AuditQuery)
        found = await self.site.pool.audit.read(caller, query)
        now = self.site.now()
        await self.show(
            "audit.html",
            self.facts(),
            rows=[
                AuditRow(
                    one, moment(one.at, now), phrases.changed(one.before, one.after, one.reason)
                )
                for one in found.records
            ],
            chosen=chosen,
            older=_older(found, chosen),
        )


def _older(found: AuditPage, chosen: dict[str, str]) -> str:
    """Return the query of the next older page; empty where there is none."""
    if not found.more:
        return ""
    return urlencode({**chosen, "below": found.records[-1].number})
