"""Jobs and records that are missing in the database, on the page *Health*, and their decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from benchpool_scheduler.api import audit, decoding
from benchpool_scheduler.contract import AdoptionRequest, SafeModeIssues
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.phrases import count
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.observed.safe_mode import SafeMode
from benchpool_scheduler.web.pages import FormHandler
from benchpool_scheduler.web.words import Moment, moment

DECISIONS: Mapping[str, Mapping[str, bool]] = {
    "adopt": {},
    "end": {"end": True},
    "go-on": {"go_on": True},
}
"""Decisions of the page, by their word in addresses, as fields of the request."""


@dataclass(frozen=True, slots=True)
class DoubtRow:
    """Unknown running job (``adopts``), or unreadable record."""

    id: str
    what: str
    whose: str
    gpus: str
    since: Moment | None
    adopts: bool

    @property
    def ending(self) -> str:
        """Return the label of the button that ends it."""
        return "Stop" if self.adopts else "Give up"


@dataclass(frozen=True, slots=True)
class DoubtsView:
    """Section of unknown jobs and unreadable records.

    Attributes:
        waits: Reason to press *Go on*, as a sentence; empty without one.
    """

    rows: tuple[DoubtRow, ...]
    waits: str


def doubts_view(doubts: SafeModeIssues, known: SafeMode, now: datetime) -> DoubtsView:
    """Return the section's rows and sentence."""
    running = [
        DoubtRow(
            id=run.id,
            what=f"job {run.name or run.id[:8]}, attempt {run.attempt}",
            whose=" of ".join(word for word in (run.project, run.user) if word) or "not known",
            gpus="not known" if run.gpus is None else count(len(run.gpus), "GPU"),
            since=None if run.since is None else moment(run.since, now),
            adopts=True,
        )
        for run in doubts.unknown
    ]
    listed = {row.id for row in running}
    unread = [
        DoubtRow(
            id=record.id,
            what=f"record of a {record.kind} in {record.file}, not readable ({record.why})",
            whose="not known",
            gpus=count(len(record.gpus), "GPU"),
            since=None,
            adopts=False,
        )
        for record in doubts.unreadable
        if record.id not in listed
    ]
    waits = ""
    if known.lost is not None:
        waits = "Nothing new starts until you press Go on."
    elif known.hub is not None:
        waits = "The Hub's database lost data. This warning stays until you press Go on."
    return DoubtsView((*running, *unread), waits)


class DoubtHandler(FormHandler):
    """``POST <prefix>health/<decision>`` with the page's XSRF token."""

    PAGE = "health"

    async def post(self, decision: str) -> None:
        """Apply the decision, then redirect. Errors: Forbidden, NotFound, Refused, Unavailable."""
        caller = await self.reader()
        rights.require_admin(caller, "decide about unknown jobs and records")
        self.refuse_forged()
        pool, operation = self.site.pool, Operations.adopt
        named = self.get_body_argument("id", "")
        try:
            fields = {"id": [named]} if decision != "go-on" else {}
            asked = decoding.query(fields, AdoptionRequest)
            body = AdoptionRequest(asked.id, **DECISIONS[decision])
            answer = await pool.adoption.act(caller, body)
        except BenchpoolError as refused:
            audit.note(pool, operation, caller, self, refused)
            raise
        await pool.audit.record(audit.done(operation, caller, self.request, {}, body, answer, None))
        self.redirect(f"{self.site.root}health#unknown", status=303)
