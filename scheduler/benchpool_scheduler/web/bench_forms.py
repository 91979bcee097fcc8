"""Administrators' operations on benches from the pool's page and from *Fleet*."""

from __future__ import annotations

from benchpool_scheduler.api import audit, decoding
from benchpool_scheduler.contract import BenchWanted
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.web.pages import FormHandler


class AskBackHandler(FormHandler):
    """``POST <prefix>benches/<lease>/ask-back`` with the page's XSRF token."""

    PAGE = "#benches"

    async def post(self, lease: str) -> None:
        """Request the bench from its owner, then redirect to the section."""
        caller = await self.reader()
        self.refuse_forged()
        pool, operation = self.site.pool, Operations.ask_back
        reason = " ".join(self.get_body_argument("reason", "").split())
        try:
            body = decoding.query({"reason": [reason]}, BenchWanted)
            answer = await pool.benches.ask_back(caller, lease, body)
        except BenchpoolError as refused:
            audit.note(pool, operation, caller, self, refused)
            raise
        path = {"lease": lease}
        await pool.audit.record(
            audit.done(operation, caller, self.request, path, body, answer, None)
        )
        at = "fleet#idle" if self.get_body_argument("back", "") == "fleet" else "#benches"
        self.redirect(f"{self.site.root}{at}", status=303)
