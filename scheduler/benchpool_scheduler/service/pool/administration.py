"""The verbs of administrators: the configuration, what if, the recorded history."""

from __future__ import annotations

from benchpool_scheduler import contract
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration import history
from benchpool_scheduler.service.observed.site import Site
from benchpool_scheduler.service.pool.engine import Engine
from benchpool_scheduler.service.process.shielded import shielded


class Administration:
    """Part of ``Pool``."""

    _engine: Engine
    _site: Site

    def check_configuration(self, caller: Caller, text: str) -> contract.ConfigurationChange:
        """Say what a configuration would change for whom.

        Errors: Forbidden for others than administrators, InvalidInput with line and key.
        """
        rights.require_admin(caller, "look at the configuration")
        return self._engine.reconfiguration.check(text)

    async def apply_configuration(self, caller: Caller, text: str) -> contract.ConfigurationChange:
        """Put a configuration in force, all or nothing. Errors: as ``check_configuration``."""
        rights.require_admin(caller, "change the configuration")
        return await shielded(self._engine.reconfiguration.apply(text))

    async def use_configuration(self, text: str, source: str) -> contract.ConfigurationChange:
        """Put a configuration in force that is kept elsewhere: all or nothing.

        Errors: InvalidInput; the old one stays.
        """
        return await shielded(self._engine.reconfiguration.use(text, source))

    async def reload_configuration(self) -> contract.ConfigurationChange:
        """Read the configuration file again (SIGHUP). Errors: InvalidInput; the old one stays."""
        return await shielded(self._engine.reconfiguration.reload())

    async def whatif(self, caller: Caller, question: contract.WhatIfQuestion) -> contract.WhatIf:
        """Say who would run, wait and pay with another configuration or more GPUs.

        Errors: Forbidden for others than administrators, InvalidInput, TooMany.
        """
        rights.require_admin(caller, "ask what if")
        return await self._engine.whatifs.ask(question)

    async def history(self, caller: Caller, days: float) -> str:
        """Return what ran and ended in the last ``days`` as a trace (formats, section 2).

        Errors: Forbidden for others than administrators.
        """
        rights.require_admin(caller, "read the recorded history")
        policy = self._site.configuration.policy
        now = self._site.clock.now()
        found = await history.history(self._engine.ledger, now, days, policy.restart_s)
        return history.as_csv(found.jobs)
