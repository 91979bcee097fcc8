"""Version history of the configuration, recorded as versions come into force."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from benchpool_scheduler.configuration import Configuration, compare, load
from benchpool_scheduler.contract.configuration import (
    ConfigurationText,
    ConfigurationVersion,
    VersionWay,
)
from benchpool_scheduler.errors import InvalidInput, NotFound, Refused, Unavailable
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.configuration_versions import KeptVersion, VersionFiles


@dataclass(frozen=True, slots=True)
class VersionOrigin:
    """Origin of a version: its way, author and reason; ``reverts`` is the version that it
    restores.
    """

    way: VersionWay
    author: str = ""
    reason: str = ""
    reverts: int | None = None


class Versions:
    """History of the configuration: who changed it, when, why, and to what."""

    def __init__(self, observed: SchedulerState, files: VersionFiles, named: str | None) -> None:
        self._observed = observed
        self._files = files
        self._named = named

    async def begin(self, *, by_text: bool) -> None:
        """Record the configuration in force at a start, if it differs from the last version.

        Args:
            by_text: A different text is a new version, even with the same meaning.
        """
        now = self._observed.now.configuration
        last = await asyncio.to_thread(self._files.newest)
        changes: list[str] = []
        if last:
            changes = _changes(last[0].text, now)
            if not changes and not (by_text and last[0].text != now.text):
                return
        try:
            await self.add(now.text, VersionOrigin(VersionWay.START), changes)
        except Unavailable as failed:
            self._observed.report("configuration-versions", failed.message)

    async def add(self, text: str, origin: VersionOrigin, changes: list[str]) -> int:
        """Record a version and return its number. Errors: Unavailable."""
        version = ConfigurationVersion(
            number=0,
            at=datetime.fromtimestamp(self._observed.settings.clock.now(), UTC),
            author=origin.author,
            way=origin.way,
            reason=origin.reason,
            changes=changes,
            reverts=origin.reverts,
            hash=hashlib.sha256(text.encode()).hexdigest(),
        )
        try:
            return (await asyncio.to_thread(self._files.add, version, text)).number
        except OSError as failed:
            raise Unavailable(
                f"The version of the configuration cannot be written into {self._files.folder} "
                f"({failed.strerror or failed}). Free space there, or make it writable.",
                code="configuration-versions",
            ) from None

    async def drop(self, number: int) -> None:
        """Remove a version that did not come into force."""
        await asyncio.to_thread(self._files.drop, number)

    async def current(self) -> int | None:
        """Return the number of the version in force, or None if none is recorded."""
        newest = await asyncio.to_thread(self._files.newest)
        return newest[0].version.number if newest else None

    async def log(self, caller: Caller, limit: int) -> list[ConfigurationVersion]:
        """Return versions, newest first. Errors: Forbidden for non-administrators."""
        rights.require_admin(caller, "read the versions of the configuration")
        return [one.version for one in await asyncio.to_thread(self._files.newest, limit)]

    async def text(self, caller: Caller, number: int | None) -> ConfigurationText:
        """Return the text of a version; the one in force by default. Errors: Forbidden,
        NotFound.
        """
        rights.require_admin(caller, "read the configuration")
        if number is None:
            in_force = self._observed.now.configuration.text
            return ConfigurationText(await self.current() or 0, in_force, self._named)
        return ConfigurationText(number, (await self.kept(number)).text, self._named)

    async def kept(self, number: int) -> KeptVersion:
        """Return a version. Errors: NotFound."""
        found = await asyncio.to_thread(self._files.get, number)
        if found is None:
            raise NotFound(
                f"There is no version {number} of the configuration. `benchpool config log` lists "
                "all versions.",
                field="version",
                numbers={"version": number},
            )
        return found

    async def before(self) -> KeptVersion:
        """Return the version before the one in force. Errors: Refused if there is none."""
        newest = await asyncio.to_thread(self._files.newest, 2)
        if len(newest) < 2:
            raise Refused(
                "There is no version before the current one: no change was made since "
                "versions are recorded.",
                code="no-version-before",
            )
        return newest[1]

    async def refuse_other_base(self, base: int | None) -> None:
        """Refuse a change based on another version than the current one. Errors: Refused."""
        now = await self.current()
        if base is not None and now != base:
            raise Refused(
                f"The configuration was changed meanwhile: your change is based on version {base}, "
                f"version {now} is in force. See `benchpool config log` and change it again.",
                code="configuration-changed",
                numbers={"base": base, "version": now},
            )


def _changes(was: str, now: Configuration) -> list[str]:
    """Return the changes since a text; empty if that text is no longer valid."""
    try:
        return compare(load(was), now)
    except InvalidInput:
        return []
