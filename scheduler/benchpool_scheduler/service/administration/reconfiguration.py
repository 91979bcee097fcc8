"""Changes of the configuration, all or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from msgspec import structs

from benchpool_scheduler import contract
from benchpool_scheduler.configuration import (
    Configuration,
    attempt,
    compare,
    edited,
    load,
    written,
)
from benchpool_scheduler.contract.configuration import (
    ConfigurationEdit,
    ConfigurationRevert,
    Setting,
    VersionWay,
)
from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.phrases import one_line
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration import (
    configuration_file,
    unfit_guarantees,
    unfit_reservations,
)
from benchpool_scheduler.service.administration.versions import VersionOrigin, Versions
from benchpool_scheduler.service.benches import bench_reserve, unfit_quotas
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.shielded import shielded
from benchpool_scheduler.store.configuration_versions import FOLDER, VersionFiles

Keep = Callable[[str], Awaitable[None]]

CONFIGURATION = "configuration"
"""Topic of problems with ``benchpool.yaml``."""


class Reconfiguration:
    """Checks and applies ``benchpool.yaml``.

    Args:
        file: File of the text in force, or None for no file.
        keep: Saves the text elsewhere before it is in force; Unavailable rolls the change back.
        changed: Called after a new configuration is in force.

    Attributes:
        versions: History of the configuration.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        file: Path | None,
        changed: Callable[[], None],
        keep: Keep | None = None,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._file = file
        self._changed = changed
        self._keep = keep
        self._named = "benchpool.yaml" if file is None else file.name
        folder = observed.settings.state / "scheduler" / FOLDER
        self.versions = Versions(
            observed, VersionFiles(folder), None if file is None else str(file)
        )

    async def open(self) -> None:
        """Record the configuration in force, if it differs from the last version."""
        await self.versions.begin(by_text=self._file is not None)

    def check(
        self, caller: Caller, text: str, file: str | None = None
    ) -> contract.ConfigurationChange:
        """Return the changes that a configuration would make, and for whom.

        Args:
            file: Name of the text in messages; the pool's own file by default.

        Errors: Forbidden for non-administrators, InvalidInput with line and key.
        """
        rights.require_admin(caller, "look at the configuration")
        return self._difference(self.read(text, file), applied=False)

    def difference(self, new: Configuration) -> contract.ConfigurationChange:
        """Return the changes that a parsed configuration would make."""
        return self._difference(new, applied=False)

    async def apply(
        self, caller: Caller, text: str, file: str | None = None, reason: str = ""
    ) -> contract.ConfigurationChange:
        """Apply and save a configuration: all or nothing.

        Errors: as ``check``; Refused if the file was edited by hand and the edit is not in force;
        Unavailable when it cannot be saved.
        """
        rights.require_admin(caller, "change the configuration")
        origin = VersionOrigin(VersionWay.APPLY, caller.name, one_line(reason))
        return await shielded(self._put_in_force(text, origin, file))

    async def set(self, caller: Caller, edit: ConfigurationEdit) -> contract.ConfigurationChange:
        """Set single values and keep the rest of the file as written: all or nothing.

        Errors: as ``apply``; Refused if another version came into force since, or the file was
        edited by hand and the edit is not in force.
        """
        rights.require_admin(caller, "change the configuration")
        return await self.set_for(caller, edit)

    async def set_for(
        self, caller: Caller, edit: ConfigurationEdit
    ) -> contract.ConfigurationChange:
        """Set values as ``set`` does, for a caller whose right to these settings was already
        checked.
        """
        origin = VersionOrigin(VersionWay.SET, caller.name, one_line(edit.reason))
        return await shielded(self._set(edit, origin))

    async def revert(
        self, caller: Caller, asked: ConfigurationRevert
    ) -> contract.ConfigurationChange:
        """Apply a former version again, as a new version.

        Errors: as ``apply``; NotFound for a version that is not kept.
        """
        rights.require_admin(caller, "change the configuration")
        versions, number = self.versions, asked.version
        kept = await (versions.before() if number is None else versions.kept(number))
        number = kept.version.number
        origin = VersionOrigin(VersionWay.REVERT, caller.name, one_line(asked.reason), number)
        source = f"version {number} of the configuration"
        return await shielded(self._revert(kept.text, origin, source))

    def tried(self, settings: Sequence[Setting], text: str | None = None) -> Configuration:
        """Return the configuration of a text (that in force by default) with some values set.

        Errors: InvalidInput.
        """
        before = self._observed.now.configuration.text if text is None else text
        try:
            found = attempt(before, settings, self._named)
            if found is not None:
                return self._fitting(found)
        except InvalidInput:
            pass  # the next line raises it with the right line number
        return self.read(edited(before, settings, self._named))

    async def use(
        self, text: str, source: str, *, overtaken: Callable[[], bool] = lambda: False
    ) -> contract.ConfigurationChange | None:
        """Apply a configuration that is saved elsewhere already: all or nothing.

        Args:
            overtaken: Returns whether the text is older than the saved one; called while no other
                change is possible. If true, nothing changes and None is returned.

        Errors: InvalidInput; the old one stays.
        """
        return await shielded(self._use(text, source, overtaken))

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

    async def _put_in_force(
        self, text: str, origin: VersionOrigin, source: str | None
    ) -> contract.ConfigurationChange:
        async with self._ledger.lock:
            answer = await self._take(text, origin, source)
        self._announce()
        return answer

    async def _revert(
        self, text: str, origin: VersionOrigin, source: str
    ) -> contract.ConfigurationChange:
        """Apply a former version; an edit of the file that is not in force is saved beside it."""
        async with self._ledger.lock:
            await asyncio.to_thread(self.read, text, source)
            kept = await asyncio.to_thread(self._keep_edit, text)
            answer = await self._take(text, origin, source, over=() if kept is None else kept[1:])
        self._announce()
        if kept is None:
            return answer
        warning = (
            f"{self._file} was changed by hand and was not in force: that text is in {kept[0]}."
        )
        return structs.replace(answer, warnings=[*answer.warnings, warning])

    def _keep_edit(self, text: str) -> tuple[Path, str] | None:
        if self._file is None:
            return None
        before = self._observed.now.configuration.text
        return configuration_file.keep_edit(self._file, before, text)

    async def _set(
        self, edit: ConfigurationEdit, origin: VersionOrigin
    ) -> contract.ConfigurationChange:
        async with self._ledger.lock:
            await self.versions.refuse_other_base(edit.base)
            await asyncio.to_thread(self._refuse_changed_file)
            text = await asyncio.to_thread(self._edited, edit.settings)
            answer = await self._take(text, origin, f"the changed {self._named}")
        self._announce()
        return answer

    async def _take(
        self,
        text: str,
        origin: VersionOrigin,
        source: str | None,
        *,
        written: bool = False,
        over: Sequence[str] = (),
    ) -> contract.ConfigurationChange:
        """Check a text, save it as a version and in the file, and apply it.

        Args:
            written: The file contains the text already.
            over: Texts that may be overwritten, besides the one in force.
        """
        new = await asyncio.to_thread(self.read, text, source)
        answer = self._difference(new, applied=True)
        if text == self._observed.now.configuration.text:
            number, added = await self.versions.current(), None
        else:
            number = added = await self.versions.add(text, origin, answer.changes)
        try:
            if self._file is not None and not written:
                before = self._observed.now.configuration.text
                await asyncio.to_thread(configuration_file.replace, self._file, text, before, *over)
            if self._keep is not None:
                await self._keep(text)
        except BaseException:
            if added is not None:
                await self.versions.drop(added)
            raise
        self._observed.put(self._observed.now.with_configuration(new))
        return structs.replace(answer, version=number)

    def _announce(self) -> None:
        if self._file is not None:
            self._observed.report(CONFIGURATION, None)
        self._changed()

    def _refuse_changed_file(self) -> None:
        if self._file is not None:
            before = self._observed.now.configuration.text
            configuration_file.refuse_edited(self._file, before)

    async def _use(
        self, text: str, source: str, overtaken: Callable[[], bool]
    ) -> contract.ConfigurationChange | None:
        async with self._ledger.lock:
            if overtaken():
                return None
            new = self.read(text, source)
            answer = self._difference(new, applied=True)
            if not answer.changes:
                return answer
            try:
                number = await self.versions.add(
                    text, VersionOrigin(VersionWay.OBJECTS), answer.changes
                )
                answer = structs.replace(answer, version=number)
            except Unavailable as failed:
                # It is in force in the cluster even if the local disk fails.
                self._observed.report("configuration-versions", failed.message)
            self._observed.put(self._observed.now.with_configuration(new))
        self._changed()
        return answer

    async def _reload(self) -> contract.ConfigurationChange:
        if self._file is None:
            raise Unavailable("This service was started without a configuration file.")
        async with self._ledger.lock:  # reloads run one after another
            text = await asyncio.to_thread(configuration_file.read, self._file)
            answer = await self._take(text, VersionOrigin(VersionWay.RELOAD), None, written=True)
        self._announce()
        return answer

    def read(self, text: str, source: str | None = None) -> Configuration:
        """Parse and check a text without applying it. Errors: InvalidInput."""
        return self._fitting(load(text, source or self._named))

    def _edited(self, settings: Sequence[Setting]) -> str:
        return edited(self._observed.now.configuration.text, settings, self._named)

    def _fitting(self, new: Configuration) -> Configuration:
        """Return the configuration if the pool can hold its quotas. Errors: InvalidInput."""
        if self._observed.now.inventory.devices:
            then = self._observed.now.with_configuration(new)
            unfit_quotas.refuse_singles(then)
            unfit_quotas.refuse_sum(then)
            now = self._observed.settings.clock.now()
            train = bench_reserve.guaranteed_gpus(then)
            in_force = self._observed.now.configuration
            unfit_guarantees.refuse_more(then.configuration, in_force, train)
            unfit_reservations.refuse(then, train, now)
        return new

    def _difference(self, new: Configuration, *, applied: bool) -> contract.ConfigurationChange:
        changes = compare(written(self._observed.now.configuration), new)
        return contract.ConfigurationChange(
            applied=applied,
            changes=changes,
            warnings=[*new.warnings, *self._orphans(new)],
            file=None if self._file is None else str(self._file),
        )

    def _orphans(self, new: Configuration) -> list[str]:
        then = self._observed.now.with_configuration(new).configuration
        names = {str(it.name) for it in then.projects if not then.is_parent(it.name)}
        counts: dict[str, int] = {}
        for job in self._ledger.live():
            if job.project not in names:
                counts[job.project] = counts.get(job.project, 0) + 1
        return [
            f"Project {name} no longer holds jobs and {count} of its jobs have not ended: they may "
            "be preempted and do not start again."
            for name, count in counts.items()
        ]
