"""The administrator's token of ``benchpool up``: created, renewed before it expires, and rotated.

Programs of the same account read it from ``admin-token`` in the state folder.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.workstation import files
from benchpool_scheduler.workstation import state as states
from benchpool_scheduler.workstation.hub_api import HubApi
from benchpool_scheduler.workstation.hub_facts import secrets
from benchpool_scheduler.workstation.options import account
from benchpool_scheduler.workstation.state import StateFolder, find_running

NOTE = "benchpool up: administrator"
LIFETIME = timedelta(days=90)
RENEWED_BEFORE = timedelta(days=30)
LOOK_S = 24 * 3600.0
"""Interval of the check whether the token expires soon, in seconds."""


async def current(hub: HubApi, path: Path, now: datetime) -> str:
    """Return the token in the file, or a new one if it is missing or invalid.

    A token that expires within 30 days is replaced too; the old one is valid until then.

    Errors: Unavailable when the Hub does not answer, or refuses a token.
    """
    kept = _kept(path)
    ends = await hub.end_of(kept, account()) if kept else None
    if ends is not None and ends - now > RENEWED_BEFORE:
        return kept
    return await _make(hub, path)


async def rotate(hub: HubApi, path: Path) -> str:
    """Write a new token into the file, revoke the earlier ones, and return it.

    Errors: Unavailable when the Hub does not answer, or refuses a token.
    """
    before = await hub.tokens_noted(account(), NOTE)
    token = await _make(hub, path)
    for id_ in before:
        await hub.revoke(account(), id_)
    return token


def rotate_running(state: Path) -> Path:
    """Rotate the token of a running ``benchpool up``; return the path of its file.

    Errors: Unavailable when none runs there, or its Hub does not answer.
    """
    folder = states.at(state)
    running = find_running(folder)

    async def exchange() -> None:
        hub = HubApi(running.hub_api, secrets(folder).hub_token)
        try:
            await rotate(hub, folder.admin_token)
        finally:
            await hub.close()

    asyncio.run(exchange())
    return folder.admin_token


async def keep_good(hub_url: str, folder: StateFolder) -> None:
    """Renew the token of a long-running ``benchpool up``; runs forever."""
    while True:
        await asyncio.sleep(LOOK_S)
        hub = HubApi(hub_url, secrets(folder).hub_token)
        try:
            # If the Hub is restarting now, the next check is tomorrow.
            with contextlib.suppress(BenchpoolError, OSError):
                await current(hub, folder.admin_token, datetime.now(UTC))
        finally:
            await hub.close()


def _kept(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


async def _make(hub: HubApi, path: Path) -> str:
    token = await hub.new_token(account(), NOTE, LIFETIME)
    files.write_private(path, token.encode() + b"\n")
    return token
