"""Routes for the bench of this server."""

from __future__ import annotations

from jupyter_server.auth.decorator import authorized
from tornado import web

from benchpool.server.bench.bench_watch import BenchWatch
from benchpool.server.handlers import Handler


class BenchHandler(Handler):
    """``GET bench``: activity of kernels and terminals, and the state of the GPUs."""

    _track_activity = False  # a page that only watches does not keep an idle server alive

    @property
    def watch(self) -> BenchWatch:
        """Watch of this server's bench."""
        found: BenchWatch = self.settings["benchpool_bench"]
        return found

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with the present state."""
        await self.answer(self.watch.now())


class KeepHandler(BenchHandler):
    """``POST bench/keep``: keep an idle bench for a while."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Keep the bench."""
        await self.answer(self.watch.keep())


class GiveBackHandler(BenchHandler):
    """``POST bench/give-back``: release the GPUs."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Start the release."""
        await self.answer(self.watch.give_back())
