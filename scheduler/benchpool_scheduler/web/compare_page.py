"""The page that compares two jobs, mostly two submissions of the same notebook or cell."""

from __future__ import annotations

import asyncio

from benchpool_scheduler.contract import Curve, Job, JobDetail, MetricsQuery
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.compare_view import Sent, compare, shortened
from benchpool_scheduler.web.curve_view import LabelledCurves, pictures
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.runs_page import POINTS, SIZE
from benchpool_scheduler.web.words import moment


class CompareHandler(PageHandler):
    """``GET <prefix>jobs/<id>/compare?with=<id>``: by default with the previous submission."""

    async def get(self, job: str) -> None:
        """Show the page. Errors: NotFound for jobs that the reader may not see."""
        caller = await self.reader()
        pool, now = self.site.pool, self.site.now()
        detail = pool.jobs.detail(caller, job)
        others = pool.comparison.others(caller, detail.job)
        named = self.get_query_argument("with", "").strip()
        other = self._other(caller, detail.job, others, named)
        pair = sorted((it for it in (detail, other) if it), key=lambda it: it.job.submitted)
        sent = [await self._sent(caller, it) for it in pair]
        found = None if len(sent) < 2 else await asyncio.to_thread(compare, sent[0], sent[1], now)
        labels = [it.detail.job.id[:8] for it in sent]
        reported = [await self._reported(caller, it.detail.job.id) for it in sent]
        shown = [LabelledCurves(it, of) for it, of in zip(labels, reported, strict=True)]
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
            labels=labels,
            pictures=pictures(shown) if len(sent) > 1 else (),
            size=SIZE,
        )

    def _other(self, caller: Caller, job: Job, others: list[Job], named: str) -> JobDetail | None:
        if named:
            return self.site.pool.jobs.detail(caller, named)
        chosen = self.site.pool.comparison.before(caller, job) or next(iter(others), None)
        return None if chosen is None else self.site.pool.jobs.detail(caller, chosen.id)

    async def _reported(self, caller: Caller, job: str) -> list[Curve]:
        query = MetricsQuery(points=POINTS)
        return (await self.site.pool.logs.metrics(caller, job, query)).curves

    async def _sent(self, caller: Caller, detail: JobDetail) -> Sent:
        pool = self.site.pool
        submission = pool.jobs.submission(caller, detail.job.id)
        try:
            code = await pool.contents.code(detail.job.id, submission)
        except NotFound:
            code = None
        around = await pool.comparison.environment(caller, detail.job.id)
        return Sent(detail, submission, code, around)
