"""Two jobs side by side, mostly two sends of the same notebook or cell."""

from __future__ import annotations

import asyncio

from benchpool_scheduler.contract import Job, JobDetail
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.compare_view import Sent, compare, shortened
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.words import moment

OFFERED = 50
"""Other sends that the page offers; any job can be named."""


class CompareHandler(PageHandler):
    """``GET <prefix>jobs/<id>/compare?with=<id>``: by default with the send before it."""

    async def get(self, job: str) -> None:
        """Show the page. Errors: NotFound for jobs that the reader may not see."""
        caller = await self.reader()
        pool, now = self.site.pool, self.site.now()
        detail = pool.jobs.detail(caller, job)
        others = self._others(caller, detail.job)
        named = self.get_query_argument("with", "").strip()
        other = self._other(caller, detail.job, others, named)
        pair = sorted((it for it in (detail, other) if it), key=lambda it: it.job.submitted)
        sent = [await self._sent(caller, it) for it in pair]
        found = None if len(sent) < 2 else await asyncio.to_thread(compare, sent[0], sent[1], now)
        rows, left_out = shortened(found.differing if found else ())
        await self.show(
            "compare.html",
            self.facts(),
            job=detail.job,
            other=None if other is None else other.job,
            others=[(it, moment(it.submitted, now)) for it in others],
            pair=[(it.job, moment(it.job.submitted, now)) for it in pair],
            found=found,
            rows=rows,
            left_out=left_out,
        )

    def _others(self, caller: Caller, job: Job) -> list[Job]:
        """Return the other sends of the same user, project and name, the newest first."""
        same = self.site.pool.jobs.select(caller, all=True, user=job.user, project=job.project)
        return [it for it in same if it.name == job.name and it.id != job.id][:OFFERED]

    def _other(self, caller: Caller, job: Job, others: list[Job], named: str) -> JobDetail | None:
        if named:
            return self.site.pool.jobs.detail(caller, named)
        earlier = [it for it in others if it.submitted < job.submitted]
        chosen = next(iter(earlier or others), None)
        return None if chosen is None else self.site.pool.jobs.detail(caller, chosen.id)

    async def _sent(self, caller: Caller, detail: JobDetail) -> Sent:
        pool = self.site.pool
        submission = pool.jobs.submission(caller, detail.job.id)
        try:
            return Sent(detail, submission, await pool.contents.code(detail.job.id, submission))
        except NotFound:
            return Sent(detail, submission, None)
