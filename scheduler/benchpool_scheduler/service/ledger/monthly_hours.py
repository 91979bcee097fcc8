"""What the core is told of budgets of GPU-hours: who is past them in this month."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.core.fairness.hour_standing import HourStanding
from benchpool_scheduler.core.model import WaitReason
from benchpool_scheduler.store.records import JobRecord


@dataclass(frozen=True, slots=True)
class MonthlyHours:
    """Who is past a budget; the same value as long as nobody comes to be.

    Attributes:
        renewed: The day on which the next month begins, as people read it.
    """

    renewed: str = ""
    standing: HourStanding = field(default_factory=HourStanding)

    def blocks(self, job: JobRecord, configuration: Configuration) -> WaitReason | None:
        """Return why a job may not start yet; None where it may.

        One that has run before goes on: what was begun is not left lying.
        """
        if not self.standing.exhausted or job.attempt:
            return None
        keys = configuration.hour_budgets.accounts_of(job.project, job.user)
        return self.standing.why_waiting(keys, self.renewed)
