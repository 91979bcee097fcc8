"""Actions of the table from a page: plain forms that lead back to where they were."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from benchpool_scheduler.api import audit, decoding
from benchpool_scheduler.contract import Job
from benchpool_scheduler.contract.actions import ActionReason, JobActions
from benchpool_scheduler.contract.operation import Operation, declared
from benchpool_scheduler.errors import BenchpoolError, Forbidden, InvalidInput
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.pages import PageHandler

MOST_REASON = 200

FORMS: Mapping[str, Operation[Any]] = {
    one.name: one for one in declared(JobActions) if one.form is not None
}
"""What pages offer to do with a job, by its word in their addresses."""


class ActionHandler(PageHandler):
    """``POST <prefix>jobs/<id>/<verb>`` with the page's XSRF token."""

    async def post(self, job: str, verb: str) -> None:
        """Act, then lead back with a message."""
        caller = await self.reader()
        self._refuse_forged()
        target = self.site.pool.jobs.detail(caller, job).job
        body = self._body(FORMS[verb].body or ActionReason, caller, target)
        await self._act(caller, target, FORMS[verb], body)
        query = urlencode({"did": verb, "of": target.id})
        back = f"jobs/{target.id}" if self.get_body_argument("back", "") == "job" else ""
        self.redirect(f"{self.site.root}{back}?{query}", status=303)

    async def _act(
        self, caller: Caller, target: Job, operation: Operation[Any], body: Struct
    ) -> None:
        """Act, and have it in the audit trail, as the same request to the API."""
        try:
            after = await self.site.pool.jobs.act(caller, target.id, operation.name, body)
        except BenchpoolError as error:
            audit.note(self.site.pool, operation, caller, self, error)
            raise
        await self.site.pool.audit.record(
            audit.done(operation, caller, self.request, {"job": target.id}, body, after, target)
        )

    def _refuse_forged(self) -> None:
        """Compare the form's token with the session's, whatever ``Identity`` has checked."""
        given = self.get_body_argument("_xsrf", "").encode()
        if not hmac.compare_digest(given, self.site.identity.xsrf_token(self).encode()):
            raise Forbidden(
                "This form is not from the page you have open now: open the page again.",
                code="xsrf",
            )

    def _body(self, type_: type[Struct], caller: Caller, job: Job) -> Struct:
        """Return what the form asks for; a field that is empty, or cannot change, is left out."""
        if type_ is ActionReason:
            return ActionReason(self._why(caller, job))
        names = type_.__struct_fields__
        texts = {name: self.get_body_argument(name, "").strip() for name in names}
        return decoding.query({name: [text] for name, text in texts.items() if text}, type_)

    def _why(self, caller: Caller, job: Job) -> str | None:
        """Return why; whoever intervenes in somebody else's job says it (screens, section 5)."""
        reason = " ".join(self.get_body_argument("reason", "").split())
        if len(reason) > MOST_REASON:
            raise InvalidInput(
                f"The reason has {len(reason)} characters, at most {MOST_REASON} are kept: "
                "say it shorter.",
                field="reason",
                numbers={"length": len(reason), "limit": MOST_REASON},
            )
        if not reason and job.user != caller.name:
            raise InvalidInput(
                f"This job is {job.user}'s: give a short reason for {job.user} to read.",
                field="reason",
            )
        return reason or None
