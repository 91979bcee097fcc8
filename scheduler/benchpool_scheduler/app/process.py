"""The process that the Hub or a cluster starts: its log, its settings, its two modes."""

from __future__ import annotations

import asyncio
import logging
import sys

from benchpool_scheduler.app.settings import SchedulerApp, variable
from benchpool_scheduler.errors import BenchpoolError

log = logging.getLogger("benchpool_scheduler")


class Process(SchedulerApp):
    """The process with these settings."""

    def start(self) -> None:
        """Serve until told to end."""
        if self.settings_file:
            self.load_config_file(self.settings_file)
        asyncio.run(self._run())

    async def _run(self) -> None:
        # What only one of both modes needs is not loaded for the other.
        if self.mode == "kubernetes":
            from benchpool_scheduler.app.cluster import Replica

            await Replica(self).run()
        else:
            from benchpool_scheduler.app.embedded import EmbeddedServer

            await EmbeddedServer(self).run()


def main() -> None:
    """Run the process; an error that a person can act on is one line."""
    logging.basicConfig(
        level=variable("BENCHPOOL_LOG_LEVEL", "INFO"),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # One line per request of the Hub's client library is noise, and names URLs.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        Process.launch_instance(argv=sys.argv[1:])
    except BenchpoolError as error:
        log.error("%s", error.message)
        sys.exit(error.exit_status)
