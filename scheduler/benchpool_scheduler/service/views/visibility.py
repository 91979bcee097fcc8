"""Visibility of jobs for one caller, cached per project."""

from __future__ import annotations

from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.observed.observed import SchedulerState


class Visibility:
    """Answers for one caller, by the rights of the configuration in force."""

    def __init__(self, caller: Caller, observed: SchedulerState) -> None:
        self.caller = caller
        self._observed = observed
        self._configuration = observed.now.configuration
        self._known: dict[str, bool] = {}

    @property
    def audience(self) -> object:
        """Return a value that is equal for all callers with the same visibility."""
        return None if rights.rules_all(self.caller) else self.caller

    def covers(self, user: str, project: str) -> bool:
        """Return whether the caller may see a user's job in a project; a bench has none (empty)."""
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
