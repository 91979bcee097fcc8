"""Backups of databases and configuration, on request and once a day."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from benchpool_scheduler import contract
from benchpool_scheduler.errors import BenchpoolError, Refused
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store import (
    Copied,
    access_requests,
    audit_copies,
    configuration_versions,
    content_copies,
    copies,
    curve_files,
    past_jobs,
    schedule_files,
    service_files,
    subscription_files,
    sweep_files,
)

ASKED, DAILY = "asked", "daily"
DAY_S = 24 * 3600.0
LOOK_S = 600.0
"""Interval between checks of the age of the newest daily copy, in seconds. The first check is this
long after the start: a copy competes for the disk with servers that are starting."""


class Backups:
    """Backups of the files of the service and the Hub.

    Args:
        configuration_file: ``benchpool.yaml``, or None if there is none.
        kept: Number of daily copies to keep; 0 makes none.
    """

    def __init__(
        self, ledger: Ledger, observed: SchedulerState, configuration_file: Path | None, kept: int
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._file = configuration_file
        self._kept = kept
        self._lock = asyncio.Lock()
        self.contents: Callable[[], Awaitable[set[str]]] | None = None
        """Returns the content hashes that jobs need that have not ended."""

    async def make_for(self, caller: Caller) -> contract.BackupMade:
        """Make a copy on request; it replaces the previous requested copy.

        Errors: Forbidden for non-administrators; Unavailable; Refused on a cluster, whose facts are
        in the API server.
        """
        rights.require_admin(caller, "make a backup")
        return await self._make(ASKED, 1)

    async def make_daily(self) -> None:
        """Make a copy if the newest one is a day old, and report problems."""
        if not self._kept or not isinstance(self._ledger.store, Copied):
            return
        newest = await asyncio.to_thread(copies.newest, self._folder, DAILY)
        now = self._observed.settings.clock.now()
        if newest is not None and now - newest.stat().st_mtime < DAY_S:
            return
        try:
            made = await self._make(DAILY, self._kept)
        except (BenchpoolError, OSError) as error:
            self._observed.report(
                "backup", f"The daily copy of the databases could not be made: {error}"
            )
        else:
            self._observed.report("backup", " ".join(made.missing) or None)

    @property
    def _folder(self) -> Path:
        return self._observed.settings.state / "backups"

    async def _make(self, kind: str, kept: int) -> contract.BackupMade:
        store = self._ledger.store
        if not isinstance(store, Copied):
            cluster = self._observed.settings.containers
            raise Refused(cluster.backup if cluster is not None else "", code="no-database")
        async with self._lock:
            folder = self._folder / copies.folder_name(kind)
            partial = folder.with_name(f".{folder.name}")
            try:
                await asyncio.to_thread(_fresh, partial)
                await store.copy_to(partial / "pool.sqlite")
                needed = await self.contents() if self.contents is not None else set()
                missing = await asyncio.to_thread(self._copy_rest, partial)
                missing += await asyncio.to_thread(self._copy_contents, partial, needed)
                await asyncio.to_thread(partial.rename, folder)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
            await asyncio.to_thread(copies.keep, self._folder, kind, kept)
        return contract.BackupMade(
            folder=str(folder),
            at=datetime.now(UTC),
            files={
                it.relative_to(folder).as_posix(): it.stat().st_size
                for it in sorted(folder.rglob("*"))
                if it.is_file()
            },
            missing=missing,
        )

    def _copy_contents(self, folder: Path, needed: set[str]) -> list[str]:
        objects = self._observed.settings.state / content_copies.FOLDER
        try:
            content_copies.copy_into(objects, folder / content_copies.FOLDER, needed)
        except OSError as error:
            return [f"The uploaded code of jobs, {objects}, could not be copied: {error}."]
        return []

    def _copy_rest(self, folder: Path) -> list[str]:
        """Copy all files except the pool's database and contents; return a sentence for each
        failure.
        """
        missing: list[str] = []
        hub = self._observed.settings.state / "hub" / "jupyterhub.sqlite"
        if hub.exists():
            try:
                copies.copy_file(hub, folder / hub.name)
            except (copies.CopyFailed, OSError) as error:
                missing.append(f"The Hub's database {hub} could not be copied: {error}.")
        trail = self._observed.settings.state / "scheduler" / "audit"
        try:
            audit_copies.copy_into(trail, folder / audit_copies.FOLDER)
        except OSError as error:
            missing.append(f"The audit trail {trail} could not be copied: {error}.")
        past = self._observed.settings.state / "scheduler" / past_jobs.FOLDER
        try:
            past_jobs.copy_into(past, folder / past_jobs.FOLDER)
        except OSError as error:
            missing.append(f"The use of past jobs, {past}, could not be copied: {error}.")
        curves = self._observed.settings.state / "scheduler" / curve_files.FOLDER
        try:
            curve_files.copy_into(curves, folder / curve_files.FOLDER)
        except OSError as error:
            missing.append(f"The curves of jobs, {curves}, could not be copied: {error}.")
        for kind in (sweep_files.FOLDER, schedule_files.FOLDER, service_files.FOLDER):
            known = self._observed.settings.state / "scheduler" / kind
            try:
                sweep_files.copy_into(known, folder / kind)
            except OSError as error:
                missing.append(f"The {kind}, {known}, could not be copied: {error}.")
        versions = self._observed.settings.state / "scheduler" / configuration_versions.FOLDER
        try:
            configuration_versions.copy_into(versions, folder / configuration_versions.FOLDER)
        except OSError as error:
            missing.append(f"The configuration's versions {versions} were not copied: {error}.")
        requests = self._observed.settings.state / "scheduler" / access_requests.FILE
        try:
            access_requests.copy_into(requests, folder)
        except OSError as error:
            missing.append(f"The access requests, {requests}, were not copied: {error}.")
        try:
            subscription_files.copy_into(self._observed.settings.state / "scheduler", folder)
        except OSError as error:
            missing.append(f"Users' notification settings were not copied: {error}.")
        settings = self._observed.settings
        site = settings.notifications_file or settings.state / subscription_files.SITE
        try:
            subscription_files.copy_site(site, folder)
        except OSError as error:
            missing.append(f"The notification settings {site} were not copied: {error}.")
        if self._file is not None:
            try:
                shutil.copyfile(self._file, folder / "benchpool.yaml")
            except OSError as error:
                missing.append(f"The configuration {self._file} could not be copied: {error}.")
        return missing


def _fresh(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
