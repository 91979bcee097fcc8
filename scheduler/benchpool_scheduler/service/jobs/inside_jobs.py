"""What looks into running jobs, and lets their owners in; made together."""

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
    """Looks into running jobs, and lets their owners in.

    Args:
        live: What was measured last of GPUs; ``tick_s``: seconds between two samples.

    Attributes:
        peeks: What they do when somebody asks. ``hangs``: finds those that hang.
        shells: Inside their workers.
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
