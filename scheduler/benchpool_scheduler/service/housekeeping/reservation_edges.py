"""Background task that applies the begin and end of reservations, which change quotas."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from benchpool_scheduler.configuration import written
from benchpool_scheduler.core.fairness.reservations import next_edge_s
from benchpool_scheduler.service.observed.observed import SchedulerState

log = logging.getLogger(__name__)

LOOK_S, LEAST_S = 10.0, 0.05
"""Maximum and minimum interval between checks, in seconds; clock and configuration may change."""


class ReservationEdges:
    """Background task that requests a pass when a reservation begins or ends."""

    def __init__(self, observed: SchedulerState, want_pass: Callable[[], None]) -> None:
        self._observed = observed
        self._want_pass = want_pass

    async def run(self) -> None:
        """Check periodically until cancelled."""
        while True:
            await asyncio.sleep(self._wait_s())
            try:
                self.look()
            except Exception:
                log.exception("reservations could not be checked; retrying")

    def look(self) -> None:
        """Publish the observations again if a reservation has begun or ended, and request a
        pass.
        """
        seen = self._observed.now
        if seen.as_of(self._observed.settings.clock.now()) is not seen:
            self._observed.put(seen)
            self._want_pass()

    def _wait_s(self) -> float:
        now = self._observed.settings.clock.now()
        own = written(self._observed.now.configuration).reservations
        edge = next_edge_s(own, now)
        return LOOK_S if edge is None else max(LEAST_S, min(LOOK_S, edge - now))
