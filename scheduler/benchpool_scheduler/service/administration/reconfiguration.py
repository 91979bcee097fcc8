"""Puts a new configuration in force, all or nothing."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchpool_scheduler import contract
from benchpool_scheduler.configuration import Configuration, compare, load
from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.service.process.shielded import shielded

Keep = Callable[[str], Awaitable[None]]

CONFIGURATION = "configuration"
"""The topic of problems with ``benchpool.yaml``."""


class Reconfiguration:
    """Checks and applies ``benchpool.yaml``.

    Args:
        file: Where the text in force is kept, None for nowhere.
        keep: Keeps it elsewhere too, before it is in force; Unavailable leaves all as it was.
        changed: Called after a new configuration is in force.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: Observed,
        file: Path | None,
        changed: Callable[[], None],
        keep: Keep | None = None,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._file = file
        self._changed = changed
        self._keep = keep

    def check(self, caller: Caller, text: str) -> contract.ConfigurationChange:
        """Say what a configuration would change for whom.

        Errors: Forbidden for others than administrators, InvalidInput with line and key.
        """
        rights.require_admin(caller, "look at the configuration")
        return self.difference(text)

    def difference(self, text: str) -> contract.ConfigurationChange:
        """Say what a text would change. Errors: InvalidInput."""
        return self._difference(self.read(text), applied=False)

    async def apply(self, caller: Caller, text: str) -> contract.ConfigurationChange:
        """Put a configuration in force and keep it: all or nothing.

        Errors: as ``check``; Unavailable when it cannot be kept.
        """
        rights.require_admin(caller, "change the configuration")
        return await shielded(self._apply(text))

    async def use(self, text: str, source: str) -> contract.ConfigurationChange:
        """Put a configuration in force that is kept elsewhere already: all or nothing.

        Errors: InvalidInput; the old one stays.
        """
        return await shielded(self._use(text, source))

    async def reload(self) -> contract.ConfigurationChange:
        """Read the configuration file again (SIGHUP).

        Errors: InvalidInput, Unavailable; the old one stays in force.
        """
        try:
            return await shielded(self._reload())
        except InvalidInput as wrong:
            self._observed.report(
                CONFIGURATION,
                f"{wrong.message} The configuration that was in force before stays: correct "
                f"{self._file} and run `benchpool config apply {self._file}`.",
            )
            raise

    async def _apply(self, text: str) -> contract.ConfigurationChange:
        async with self._ledger.lock:
            new = self.read(text)
            answer = self._difference(new, applied=True)
            if self._file is not None:
                await asyncio.to_thread(_write_whole, self._file, text)
            if self._keep is not None:
                await self._keep(text)
            self._observed.put(self._observed.now.with_configuration(new))
        if self._file is not None:
            self._observed.report(CONFIGURATION, None)
        self._changed()
        return answer

    async def _use(self, text: str, source: str) -> contract.ConfigurationChange:
        async with self._ledger.lock:
            new = self.read(text, source)
            answer = self._difference(new, applied=True)
            if not answer.changes:
                return answer
            self._observed.put(self._observed.now.with_configuration(new))
        self._changed()
        return answer

    async def _reload(self) -> contract.ConfigurationChange:
        if self._file is None:
            raise Unavailable("This service was started without a configuration file.")
        try:
            text = await asyncio.to_thread(self._file.read_text)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(
                f"{self._file} cannot be read ({error}).",
                code="configuration",
            ) from None
        async with self._ledger.lock:
            new = self.read(text)
            answer = self._difference(new, applied=True)
            if self._keep is not None:
                await self._keep(text)
            self._observed.put(self._observed.now.with_configuration(new))
        self._observed.report(CONFIGURATION, None)
        self._changed()
        return answer

    def read(self, text: str, source: str | None = None) -> Configuration:
        """Read and check a text without using it. Errors: InvalidInput."""
        named = "benchpool.yaml" if self._file is None else self._file.name
        new = load(text, source or named)
        if self._observed.now.inventory.devices:
            bench_reserve.refuse_what_does_not_fit(self._observed.now.with_configuration(new))
        return new

    def _difference(self, new: Configuration, *, applied: bool) -> contract.ConfigurationChange:
        changes = compare(self._observed.now.configuration, new)
        return contract.ConfigurationChange(
            applied=applied, changes=changes, warnings=[*new.warnings, *self._orphans(new)]
        )

    def _orphans(self, new: Configuration) -> list[str]:
        names = {str(it.name) for it in new.projects if not new.is_parent(it.name)}
        counts: dict[str, int] = {}
        for job in self._ledger.live():
            if job.project not in names:
                counts[job.project] = counts.get(job.project, 0) + 1
        return [
            f"Project {name} no longer holds jobs and {count} of its jobs have not ended: they may "
            "be preempted and do not start again."
            for name, count in counts.items()
        ]


def _write_whole(file: Path, text: str) -> None:
    """Write a file whole; who may read it stays as it was, and a new one is its owner's alone."""
    temporary = file.with_name(f".{file.name}.new")
    try:
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o600
        temporary.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.rename(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise Unavailable(
            f"{file} cannot be written ({error.strerror}); nothing was changed.",
            code="configuration-file",
        ) from None
