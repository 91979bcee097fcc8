"""GPU-hour budgets for the core: users and projects that are past them in this month."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.core.fairness.hour_standing import HourStanding
from benchpool_scheduler.core.model import WaitReason
from benchpool_scheduler.store.records import JobRecord


@dataclass(frozen=True, slots=True)
class MonthlyHours:
    """Users and projects past a budget; an equal value while that set stays the same.

    Attributes:
        renewed: The day on which the next month begins, as text for users.
    """

    renewed: str = ""
    standing: HourStanding = field(default_factory=HourStanding)

    def blocks(self, job: JobRecord, configuration: Configuration) -> WaitReason | None:
        """Return why a job may not start yet, or None if it may.

        A job that has run before may resume.
        """
        if not self.standing.exhausted or job.attempt:
            return None
        keys = configuration.hour_budgets.accounts_of(job.project, job.user)
        return self.standing.why_waiting(keys, self.renewed)
