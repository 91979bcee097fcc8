"""What the core is told of budgets of GPU-hours: who is past them in this month."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.core.fairness.gpu_hours import HourAccount, first_exhausted, why_waiting
from benchpool_scheduler.core.model import WaitReason
from benchpool_scheduler.store.records import JobRecord


@dataclass(frozen=True, slots=True)
class MonthlyHours:
    """Who is past a budget; the same value as long as nobody comes to be.

    Attributes:
        renewed: The day on which the next month begins, as people read it.
        exhausted: Accounts that let nothing new begin, by kind and name.
        weights: By what the weights of projects are multiplied that are past the soft budget.
        behind: Users past theirs.
    """

    renewed: str = ""
    exhausted: Mapping[tuple[str, str], HourAccount] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    behind: frozenset[str] = frozenset()

    def blocks(self, job: JobRecord, configuration: Configuration) -> WaitReason | None:
        """Return why a job may not start yet; None where it may.

        One that has run before goes on: what was begun is not left lying.
        """
        if not self.exhausted or job.attempt:
            return None
        keys = [("user", job.user)]
        keys += [("project", str(it.name)) for it in configuration.upwards(job.project)]
        found = first_exhausted(self.exhausted[key] for key in keys if key in self.exhausted)
        return None if found is None else why_waiting(found, self.renewed)
