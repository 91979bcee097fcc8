"""Process started by the Hub or a cluster: its log, its settings and its two modes."""

from __future__ import annotations

import asyncio
import logging
import sys

from benchpool_scheduler.app.settings import SchedulerApp, variable
from benchpool_scheduler.errors import BenchpoolError

log = logging.getLogger("benchpool_scheduler")


class Process(SchedulerApp):
    """Scheduler process with these settings."""

    def start(self) -> None:
        """Serve until a stop signal."""
        if self.settings_file:
            self.load_config_file(self.settings_file)
        asyncio.run(self._run())

    async def _run(self) -> None:
        # Modules needed by only one of the modes are imported here.
        if self.mode == "kubernetes":
            from benchpool_scheduler.app.cluster import Replica

            await Replica(self).run()
        else:
            from benchpool_scheduler.app.embedded import EmbeddedServer

            await EmbeddedServer(self).run()


def main() -> None:
    """Run the process. An expected error is printed as one line."""
    logging.basicConfig(
        level=variable("BENCHPOOL_LOG_LEVEL", "INFO"),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # The Hub's client library logs one line per request, which is noise and contains URLs.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        Process.launch_instance(argv=sys.argv[1:])
    except BenchpoolError as error:
        log.error("%s", error.message)
        sys.exit(error.exit_status)
