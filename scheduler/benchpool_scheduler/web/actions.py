"""Actions on jobs from a page: plain forms that redirect back to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from benchpool_scheduler.api import audit, decoding
from benchpool_scheduler.contract import Job
from benchpool_scheduler.contract.actions import ActionReason, JobActions
from benchpool_scheduler.contract.forms import fields, filled_in
from benchpool_scheduler.contract.jobs import JobDiscard
from benchpool_scheduler.contract.operation import Operation, declared
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.contract.run_changes import JobAgain
from benchpool_scheduler.errors import BenchpoolError, InvalidInput
from benchpool_scheduler.service import Caller
from benchpool_scheduler.service.jobs.run_again import run_again
from benchpool_scheduler.web.pages import FormHandler

MOST_REASON = 200

FORMS: Mapping[str, Operation[Any]] = {
    one.name: one
    for one in (*declared(JobActions), Operations.discard, Operations.again)
    if one.form is not None
}
"""Operations on a job that pages offer, by their word in addresses."""


class ActionHandler(FormHandler):
    """``POST <prefix>jobs/<id>/<verb>`` with the page's XSRF token."""

    PAGE = "jobs/{job}"

    async def post(self, job: str, verb: str) -> None:
        """Run the action, then redirect back with a message."""
        caller = await self.reader()
        self.refuse_forged()
        target = self.site.pool.jobs.detail(caller, job).job
        body = self._body(FORMS[verb].body or ActionReason, caller, target)
        after = await self._act(caller, target, FORMS[verb], body)
        query = urlencode({"did": verb, "of": after.id})
        back = f"jobs/{after.id}" if self.get_body_argument("back", "") == "job" else ""
        self.redirect(f"{self.site.root}{back}?{query}", status=303)

    async def _act(
        self, caller: Caller, target: Job, operation: Operation[Any], body: Struct
    ) -> Job:
        """Run the action and record it in the audit trail, like the same API request."""
        try:
            after = await self._done(caller, target.id, operation, body)
        except BenchpoolError as error:
            audit.note(self.site.pool, operation, caller, self, error)
            raise
        await self.site.pool.audit.record(
            audit.done(operation, caller, self.request, {"job": target.id}, body, after, target)
        )
        return after

    async def _done(self, caller: Caller, job: str, operation: Operation[Any], body: Struct) -> Job:
        pool = self.site.pool
        if isinstance(body, JobDiscard):
            await pool.files.discard(caller, job, body)
            return pool.jobs.detail(caller, job).job
        if isinstance(body, JobAgain):
            return (await run_again(pool.jobs, caller, job, body))[0]
        return await pool.jobs.act(caller, job, operation.name, body)

    def _body(self, type_: type[Struct], caller: Caller, job: Job) -> Struct:
        """Return the request body of a form; empty or unchangeable fields are left out."""
        if type_ is ActionReason:
            return ActionReason(self._why(caller, job))
        texts = {it: self.get_body_argument(it.name, "").strip() for it in fields(type_)}
        found = {it.name: filled_in(it, [text]) for it, text in texts.items() if text}
        return decoding.query({name: [value] for name, value in found.items()}, type_)

    def _why(self, caller: Caller, job: Job) -> str | None:
        """Return the reason, which is required for another user's job (screens, section 5)."""
        reason = " ".join(self.get_body_argument("reason", "").split())
        if len(reason) > MOST_REASON:
            raise InvalidInput(
                f"The reason has {len(reason)} characters, at most {MOST_REASON} are "
                "allowed. Shorten it.",
                field="reason",
                numbers={"length": len(reason), "limit": MOST_REASON},
            )
        if not reason and job.user != caller.name:
            raise InvalidInput(
                f"This job belongs to {job.user}. Give a short reason for {job.user} to read.",
                field="reason",
            )
        return reason or None
