"""Puts ``benchpool.yaml`` in force again when a signal asks for it, and says what came of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
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

MOST_TRIES = 5
"""A file that is saved while it is read is read again, up to so many times in all."""


class Reloading:
    """Reads the configuration again, once for each time it is asked to, one after the other.

    Two at once could put the older of two texts in force last.

    Args:
        file: ``benchpool.yaml``.
        scheduler: Where the scheduler answers.
        token_file: Holds the administrator's token, which may be exchanged at any time.
        screen: Hears what came of it: an event for each time, whatever happens.
    """

    def __init__(self, file: Path, scheduler: str, token_file: Path, screen: StartupScreen) -> None:
        self._file = file
        self._scheduler = scheduler
        self._token_file = token_file
        self._screen = screen
        self._one = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self) -> None:
        """Read it again soon; of several that are asked for, the last one reads last."""
        task = asyncio.create_task(self._reload())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload(self) -> None:
        try:
            async with self._one:
                change = await self._apply()
        except BenchpoolError as error:
            self._screen.event(REFUSED, error.message, **error.as_json())
        except Exception as fault:
            told = _told(fault, self._file)
            self._screen.event(REFUSED, told.message, **told.as_json())
            log.exception("reading the configuration again failed")
        else:
            said = "; ".join(change.changes) or "nothing changes"
            self._screen.event(DONE, f"Configuration: {said}", changes=change.changes)

    async def _apply(self) -> ConfigurationChange:
        for _ in range(MOST_TRIES - 1):
            with suppress(Refused):  # it was saved again since it was read
                return await self._apply_once()
        return await self._apply_once()

    async def _apply_once(self) -> ConfigurationChange:
        text = await asyncio.to_thread(_read, self._file, _unreadable)
        token = await asyncio.to_thread(_read, self._token_file, _without_token)
        mine = Credentials(self._scheduler, token.strip(), source="up")
        async with AsyncClient(mine) as client:
            return await client.apply_config(text, file=str(self._file))


def _read(file: Path, error: Callable[[Path, str], BenchpoolError]) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as failed:
        raise error(file, failed.strerror or str(failed)) from failed
    except UnicodeDecodeError as failed:
        raise error(file, "it is no UTF-8 text") from failed


def _unreadable(file: Path, why: str) -> BenchpoolError:
    return InvalidInput(
        f"{file} cannot be read ({why}); the configuration that was in force before stays.",
        field="config",
    )


def _without_token(file: Path, why: str) -> BenchpoolError:
    return Unavailable(
        f"{file}, with the administrator's token, cannot be read ({why}); the configuration that "
        "was in force before stays. `benchpool token rotate` writes a new one.",
        code="admin-token",
    )


def _told(fault: Exception, file: Path) -> BenchpoolError:
    return ServerFault(
        f"A fault of benchpool ({type(fault).__name__}: {fault}): whether {file} is in force now "
        "is not known. `benchpool config log` says what is."
    )
