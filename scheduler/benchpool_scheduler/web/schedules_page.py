"""The page of schedules that the reader may see, with buttons to pause, resume and remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from benchpool_scheduler.api import audit
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.contract.schedules import Schedule, SchedulesQuery
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.pages import FormHandler, PageHandler
from benchpool_scheduler.web.schedule_view import card

SCHEDULE_ACTS: Mapping[str, Operation[Any]] = {
    "pause": Operations.pause_schedule,
    "resume": Operations.resume_schedule,
    "remove": Operations.remove_schedule,
}
"""Operations on a schedule that the page offers, by their word in addresses."""

DONE: Mapping[str, str] = {
    "pause": "The schedule is paused. It sends nothing until it is resumed.",
    "resume": "The schedule is resumed. It sends at its next time.",
    "remove": "The schedule is removed. Its jobs are not changed.",
}


class SchedulesHandler(PageHandler):
    """``GET <prefix>schedules``: the reader's own, with ``?all=1`` all visible ones."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        all_ = bool(self.get_query_argument("all", ""))
        found = self.site.pool.schedules.select(caller, SchedulesQuery(all=all_))
        await self.show(
            "schedules.html",
            self.facts(back="schedules"),
            all=all_,
            cards=[card(one) for one in found],
            message=DONE.get(self.get_query_argument("did", ""), ""),
        )


class ScheduleActHandler(FormHandler):
    """``POST <prefix>schedules/<id>/<act>`` with the page's XSRF token."""

    PAGE = "schedules"

    async def post(self, schedule: str, act: str) -> None:
        """Run the action, then redirect to the page. Errors: NotFound, Unavailable."""
        caller = await self.reader()
        self.refuse_forged()
        pool, operation = self.site.pool, SCHEDULE_ACTS[act]
        try:
            answer = await self._done(caller, schedule, act)
        except BenchpoolError as refused:
            audit.note(pool, operation, caller, self, refused)
            raise
        path = {"schedule": schedule}
        await pool.audit.record(
            audit.done(operation, caller, self.request, path, None, answer, None)
        )
        all_ = {"all": "1"} if self.get_body_argument("all", "") else {}
        query = urlencode({"did": act} | all_)
        self.redirect(f"{self.site.root}schedules?{query}", status=303)

    async def _done(self, caller: Caller, schedule: str, act: str) -> Schedule:
        schedules = self.site.pool.schedules
        if act == "pause":
            return await schedules.pause(caller, schedule)
        if act == "resume":
            return await schedules.resume(caller, schedule)
        return await schedules.remove(caller, schedule)
