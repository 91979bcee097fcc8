"""The audit trail page, for administrators."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlencode

import msgspec

from benchpool_scheduler import phrases
from benchpool_scheduler.api import decoding
from benchpool_scheduler.contract import AuditPage, AuditQuery, AuditRecord
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.words import Moment, moment

ID = re.compile(r"[a-z2-7]{26}")
"""Pattern of the ID of a job or lease."""

CHOICES = ("actor", "action", "target", "outcome", "search", "since", "until", "events")
"""Filters of the page, as fields of ``AuditQuery``."""


WHOLE = {"limit": "5000"}
MOST_EXPORTED = 100_000


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One record as the page shows it; ``what`` has its changes, or why it was refused."""

    record: AuditRecord
    at: Moment
    what: str

    @property
    def target(self) -> str:
        """Return its target, with a shortened ID."""
        whole = self.record.target
        return whole[:8] if ID.fullmatch(whole) else whole


class AuditHandler(PageHandler):
    """``GET <prefix>audit``: audit records, newest first."""

    async def get(self) -> None:
        """Show the page. Errors: Forbidden for users who are not administrators."""
        caller = await self.reader()
        chosen = {name: self.get_query_argument(name, "").strip() for name in CHOICES}
        chosen = {name: value for name, value in chosen.items() if value}
        if kind := self.get_query_argument("export", ""):
            await self._export(caller, chosen, kind)
            return
        below = self.get_query_argument("below", "")
        query = _query({**chosen, **({"below": below} if below else {})})
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
            exported=urlencode(chosen),
        )

    async def _export(self, caller: Caller, chosen: dict[str, str], kind: str) -> None:
        """Send the filtered records as a file, newest first, at most ``MOST_EXPORTED``."""
        records: list[AuditRecord] = []
        below: dict[str, str] = {}
        while len(records) < MOST_EXPORTED:
            page = await self.site.pool.audit.read(caller, _query({**chosen, **below, **WHOLE}))
            records += page.records
            if not page.more:
                break
            below = {"below": str(page.records[-1].number)}
        json = kind == "json"
        self.set_header("Content-Type", "application/json" if json else "text/csv; charset=utf-8")
        name = f"benchpool-events.{'json' if json else 'csv'}"
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(msgspec.json.encode(records) if json else phrases.audit_table(records))


def _query(asked: dict[str, str]) -> AuditQuery:
    """Return the query. A date without a time means 00:00 UTC. Errors: InvalidInput."""
    given = dict(asked)
    for name in ("since", "until"):
        if len(given.get(name, "")) == len("2026-11-23"):
            given[name] += "T00:00:00Z"
    return decoding.query({name: [value] for name, value in given.items()}, AuditQuery)


def _older(found: AuditPage, chosen: dict[str, str]) -> str:
    """Return the query string of the next older page, or an empty text."""
    if not found.more:
        return ""
    return urlencode({**chosen, "below": found.records[-1].number})
