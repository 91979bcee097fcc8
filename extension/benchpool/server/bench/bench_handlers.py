"""The routes on the bench below this server."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from benchpool.server.bench.bench_watch import BenchWatch
from benchpool.server.handlers import Handler


class BenchHandler(Handler):
    """``GET bench``: what kernels and terminals do, and what becomes of the GPUs."""

    _track_activity = False  # a page that only watches does not keep an idle server alive

    @property
    def watch(self) -> BenchWatch:
        """What looks after the bench."""
        found: BenchWatch = self.settings["benchpool_bench"]
        return found

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer for this server."""
        await self.answer(self.watch.now())


class KeepHandler(BenchHandler):
    """``POST bench/keep``: keep an idle bench for a while."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Keep it."""
        await self.answer(self.watch.keep())


class GiveBackHandler(BenchHandler):
    """``POST bench/give-back``: give the GPUs back."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Begin with it."""
        await self.answer(self.watch.give_back())
