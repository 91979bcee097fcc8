"""Access to running jobs: stacks, shells and the detection of hangs."""

from __future__ import annotations

from benchpool_scheduler.runtime import Runtime
from benchpool_scheduler.service.execution.actions import Actions
from benchpool_scheduler.service.jobs.hang_watch import HangWatch
from benchpool_scheduler.service.jobs.peeking import Peeks
from benchpool_scheduler.service.jobs.shells import Shells
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.telemetry.live import LiveUse


class InsideJobs:
    """Access to running jobs.

    Args:
        live: Latest measurements of GPUs.
        tick_s: Interval between samples, in seconds.

    Attributes:
        peeks: Stacks on request. ``hangs``: detection of hanging jobs.
        shells: Terminals inside workers.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        runtime: Runtime,
        actions: Actions,
        live: LiveUse,
        tick_s: float,
    ) -> None:
        self.peeks = Peeks(ledger, observed, runtime, live.now)
        self.shells = Shells(ledger, observed, runtime)
        self.hangs = HangWatch(ledger, observed, runtime, live, tick_s, self.peeks, actions)
