"""All jobs that the reader may see, paginated, with search."""

from __future__ import annotations

from urllib.parse import urlencode

from msgspec.structs import asdict

from benchpool_scheduler.api import decoding
from benchpool_scheduler.contract import JobsQuery, State
from benchpool_scheduler.phrases import files_held
from benchpool_scheduler.web.job_rows import Reader, attempts_of, job_row, reasons_of
from benchpool_scheduler.web.pages import PageHandler

PAGE = 200
"""Number of jobs per page."""

ASKED = ("search", "state", "project", "tag", "user", "live", "reason", "offset")
"""Parameters of the address, as fields of ``JobsQuery``."""


class JobsHandler(PageHandler):
    """``GET <prefix>jobs?search&state&project&tag&user&live&reason&offset``: the newest first."""

    async def get(self) -> None:
        """Show a page of jobs. Errors: InvalidInput for parameters of the address."""
        caller = await self.reader()
        pool, now = self.site.pool, self.site.now()
        given = {name: self.get_query_argument(name, "").strip() for name in ASKED}
        given = {name: value for name, value in given.items() if value}
        query = decoding.query({name: [value] for name, value in given.items()}, JobsQuery)
        # One more job shows whether there are older ones.
        wanted = {**asdict(query), "all": True, "limit": PAGE + 1}
        jobs = pool.jobs.select(caller, **wanted)
        shown, reader = jobs[:PAGE], Reader(caller.name, caller.admin)
        attempts = attempts_of(pool, caller, shown)
        given.pop("offset", None)
        await self.show(
            "jobs.html",
            self.facts(),
            rows=[job_row(job, attempts.get(job.id, ()), (), reader, now) for job in shown],
            query=query,
            states=[state.value for state in State],
            reasons=sorted({*reasons_of(shown), *filter(None, [query.reason])}),
            first=query.offset + 1,
            newer=_page(given, max(0, query.offset - PAGE)) if query.offset else "",
            older=_page(given, query.offset + PAGE) if len(jobs) > PAGE else "",
            kept_sentence=pool.views.kept(),
            held_sentence=files_held(await pool.files.of(caller.name)),
        )


def _page(given: dict[str, str], offset: int) -> str:
    """Return the query string of the jobs from ``offset`` on."""
    return "?" + urlencode({**given, **({"offset": offset} if offset else {})})
