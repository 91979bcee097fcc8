"""Pages of sweeps: all that the reader may see, one with its trials, and a button to stop it."""

from __future__ import annotations

from benchpool_scheduler.api import audit, decoding
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.contract.sweeps import SweepsQuery, SweepState, SweepStop
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.phrases import gpu_hours
from benchpool_scheduler.web import sweep_view
from benchpool_scheduler.web.pages import FormHandler, PageHandler
from benchpool_scheduler.web.words import moment


class SweepsHandler(PageHandler):
    """``GET <prefix>sweeps``: the reader's own, with ``?all=1`` all visible ones."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        all_ = bool(self.get_query_argument("all", ""))
        found = await self.site.pool.sweeps.select(caller, SweepsQuery(all=all_))
        now = self.site.now()
        await self.show(
            "sweeps.html",
            self.facts(back="sweeps"),
            all=all_,
            rows=[(one, moment(one.created, now)) for one in found],
            hours=gpu_hours,
        )


class SweepHandler(PageHandler):
    """``GET <prefix>sweeps/<id>``."""

    async def get(self, sweep: str) -> None:
        """Show the page. Errors: NotFound for sweeps that the reader may not see."""
        caller = await self.reader()
        found = await self.site.pool.sweeps.show(caller, sweep)
        now = self.site.now()
        await self.show(
            "sweep.html",
            self.facts(),
            sweep=found,
            begun=moment(found.created, now),
            names=list(found.plan.parameters),
            picture=sweep_view.picture(found),
            size=(sweep_view.WIDTH, sweep_view.HEIGHT, sweep_view.TOP, sweep_view.FOOT),
            figure=sweep_view.figure,
            parameter=sweep_view.parameter,
            hours=gpu_hours,
            stops=found.state is not SweepState.OVER,
            needs_reason=caller.admin and caller.name != found.user,
        )


class StopSweepHandler(FormHandler):
    """``POST <prefix>sweeps/<id>/stop`` with the page's XSRF token."""

    PAGE = "sweeps/{sweep}"

    async def post(self, sweep: str) -> None:
        """Stop the sweep, then redirect to its page."""
        caller = await self.reader()
        self.refuse_forged()
        pool, operation = self.site.pool, Operations.stop_sweep
        given = {
            "let_finish": ["true" if self.get_body_argument("finish", "") else "false"],
            "keep_best": ["true" if self.get_body_argument("best", "") else "false"],
            "reason": [" ".join(self.get_body_argument("reason", "").split())],
        }
        try:
            body = decoding.query(given, SweepStop)
            answer = await pool.sweeps.stop(caller, sweep, body)
        except BenchpoolError as refused:
            audit.note(pool, operation, caller, self, refused)
            raise
        path = {"sweep": sweep}
        await pool.audit.record(
            audit.done(operation, caller, self.request, path, body, answer, None)
        )
        self.redirect(f"{self.site.root}sweeps/{sweep}", status=303)
