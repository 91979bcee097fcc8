"""The process of the node agent: measures and reports until it is stopped."""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable

from benchpool_scheduler.node_agent.kubelet import KubeletSocket
from benchpool_scheduler.node_agent.looking import NodeLooks
from benchpool_scheduler.node_agent.reporting import NotTaken, Reporter
from benchpool_scheduler.node_agent.settings import AgentSettings
from benchpool_scheduler.telemetry.nvml import NvmlSampler

log = logging.getLogger("benchpool_scheduler.node_agent")

HANGS_S = 120.0
"""Timeout for a measurement, after which the process ends to be restarted, in seconds."""
LEAST_S, MOST_S = 1.0, 60.0


class NodeAgent:
    """Measures at an interval, and reports the results.

    Args:
        number: Returns the number of a measurement, different each time.
    """

    def __init__(
        self,
        looks: NodeLooks,
        reporter: Reporter,
        every_s: float,
        number: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._looks = looks
        self._reporter = reporter
        self._number = number
        self._last_message = ""
        self.every_s = every_s

    def step(self) -> bool:
        """Measure and report once; return whether the report was accepted.

        A rejected report is lost.
        """
        report = self._looks.look(self._number())
        try:
            taken = self._reporter.send(report)
        except NotTaken as failed:
            self._log_change(f"the scheduler does not accept this node's reports: {failed}")
            return False
        self.every_s = min(max(taken.every_s, LEAST_S), MOST_S)
        self._log_change(report.problem)
        return True

    def _log_change(self, what: str) -> None:
        """Log a message unless it repeats the last one."""
        if what != self._last_message:
            log.warning("%s", what or "measurements and reports work again")
        self._last_message = what


def main() -> None:
    """Run until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        settings = AgentSettings.read(os.environ)
    except (KeyError, ValueError) as wrong:
        sys.exit(f"A setting of the agent is missing or wrong: {wrong}")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    looks = NodeLooks(KubeletSocket(settings.kubelet), NvmlSampler(), settings.cgroups)
    reporter = Reporter(settings.url, settings.node, settings.token)
    agent = NodeAgent(looks, reporter, settings.every_s)
    log.info("measures node %s every %g s", settings.node, settings.every_s)
    alive = threading.Event()
    threading.Thread(target=_watch, args=(alive,), daemon=True).start()
    # Random delay, so that agents that start together do not report at the same moment.
    stop.wait(random.uniform(0.0, settings.every_s))  # noqa: S311 - no secret
    while not stop.is_set():
        began = time.monotonic()
        agent.step()
        alive.set()
        stop.wait(max(agent.every_s - (time.monotonic() - began), 0.1))
    looks.close()
    reporter.close()


def _watch(alive: threading.Event) -> None:
    """End the process when measurements hang, since no other thread can."""
    while alive.wait(HANGS_S):
        alive.clear()
    log.error("a measurement takes more than %g s: the driver hangs; restarting the agent", HANGS_S)
    logging.shutdown()
    os._exit(1)
