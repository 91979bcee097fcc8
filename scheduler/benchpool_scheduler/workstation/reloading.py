"""Reload of the configuration and notification files on a signal, with a report."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from benchpool_scheduler.client import AsyncClient, Credentials
from benchpool_scheduler.contract import ConfigurationChange
from benchpool_scheduler.errors import (
    BenchpoolError,
    InvalidInput,
    Refused,
    ServerFault,
    Unavailable,
)
from benchpool_scheduler.workstation.startup_screen import StartupScreen

log = logging.getLogger(__name__)

DONE, REFUSED = "configuration", "configuration-refused"
NOTIFICATIONS, NOTIFICATIONS_REFUSED = "notifications", "notifications-refused"

MOST_TRIES = 5
"""Maximum number of reads of a file that is saved while it is read."""


class Reloading:
    """Reloads both files, once for each request, one request after the other.

    Concurrent reloads could leave the older of two texts in force.

    Args:
        file: ``benchpool.yaml``.
        scheduler: Address of the scheduler.
        token_file: File of the administrator's token, which may be rotated at any time.
        screen: Receives an event of the configuration for each request, and one of
            notifications when they change or their file is invalid.
    """

    def __init__(self, file: Path, scheduler: str, token_file: Path, screen: StartupScreen) -> None:
        self._file = file
        self._scheduler = scheduler
        self._token_file = token_file
        self._screen = screen
        self._one = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self) -> None:
        """Request a reload; each request is read after the ones before it."""
        task = asyncio.create_task(self._reload())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload(self) -> None:
        async with self._one:
            await self._try(REFUSED, self._configuration, self._file)
            await self._try(NOTIFICATIONS_REFUSED, self._notifications, Path("notifications.yaml"))

    async def _try(self, refused: str, read: Callable[[], Awaitable[None]], file: Path) -> None:
        try:
            await read()
        except BenchpoolError as error:
            self._screen.event(refused, error.message, **error.as_json())
        except Exception as fault:
            failure = _failure(fault, file)
            self._screen.event(refused, failure.message, **failure.as_json())
            log.exception("reload of the settings failed")

    async def _configuration(self) -> None:
        change = await self._apply()
        changes = "; ".join(change.changes) or "no changes"
        self._screen.event(DONE, f"Configuration: {changes}", changes=change.changes)

    async def _notifications(self) -> None:
        async with AsyncClient(await self._credentials()) as client:
            site = await client.reload_notifications()
        if site.changed:
            kinds = ", ".join(site.kinds) or "nothing is sent to users"
            self._screen.event(NOTIFICATIONS, f"Notifications: {kinds}", kinds=site.kinds)

    async def _apply(self) -> ConfigurationChange:
        for _ in range(MOST_TRIES - 1):
            with suppress(Refused):  # saved again since it was read
                return await self._apply_once()
        return await self._apply_once()

    async def _apply_once(self) -> ConfigurationChange:
        text = await asyncio.to_thread(_read, self._file, _unreadable)
        async with AsyncClient(await self._credentials()) as client:
            return await client.apply_config(text, file=str(self._file))

    async def _credentials(self) -> Credentials:
        token = await asyncio.to_thread(_read, self._token_file, _without_token)
        return Credentials(self._scheduler, token.strip(), source="up")


def _read(file: Path, error: Callable[[Path, str], BenchpoolError]) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as failed:
        raise error(file, failed.strerror or str(failed)) from failed
    except UnicodeDecodeError as failed:
        raise error(file, "it is not UTF-8 text") from failed


def _unreadable(file: Path, why: str) -> BenchpoolError:
    return InvalidInput(
        f"{file} cannot be read ({why}); the previous configuration stays in force.",
        field="config",
    )


def _without_token(file: Path, why: str) -> BenchpoolError:
    return Unavailable(
        f"{file}, with the administrator's token, cannot be read ({why}); the previous "
        "configuration stays in force. `benchpool token rotate` writes a new one.",
        code="admin-token",
    )


def _failure(fault: Exception, file: Path) -> BenchpoolError:
    return ServerFault(
        f"Internal error of benchpool ({type(fault).__name__}: {fault}). It is unknown whether "
        f"{file} is in force now. `benchpool config log` shows the configuration in force, "
        "`benchpool notifications` the notification settings."
    )
