"""What one caller may see of jobs, each project asked about once."""

from __future__ import annotations

from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.observed.observed import SchedulerState


class Visibility:
    """Answers for one caller, by the rights of the configuration as it is at that time."""

    def __init__(self, caller: Caller, observed: SchedulerState) -> None:
        self.caller = caller
        self._observed = observed
        self._configuration = observed.now.configuration
        self._known: dict[str, bool] = {}

    @property
    def audience(self) -> object:
        """Return what all callers share who may see the same."""
        return None if rights.rules_all(self.caller) else self.caller

    def covers(self, user: str, project: str) -> bool:
        """Tell whether the caller may see a user's job in a project; that of a bench is empty."""
        if self._observed.now.configuration is not self._configuration:
            self._configuration = self._observed.now.configuration
            self._known.clear()
        if rights.may_see_bench(self.caller, user):
            return True
        leads = self._known.get(project)
        if leads is None:
            leads = rights.leads(self.caller, project, self._configuration)
            self._known[project] = leads
        return leads
