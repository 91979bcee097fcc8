"""The administrator's token of ``benchpool up``: made, renewed before it ends, and exchanged.

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
"""How often a running ``benchpool up`` looks whether its token ends soon."""


async def current(hub: HubApi, path: Path, now: datetime) -> str:
    """Return the token in the file; a new one where there is none, or it is good no longer.

    One that ends within 30 days is replaced in the file, and is itself good until then.

    Errors: Unavailable: the Hub does not answer, or gives none.
    """
    kept = _kept(path)
    ends = await hub.end_of(kept, account()) if kept else None
    if ends is not None and ends - now > RENEWED_BEFORE:
        return kept
    return await _make(hub, path)


async def rotate(hub: HubApi, path: Path) -> str:
    """Put a new token into the file, and let the Hub forget those before; return it.

    Errors: Unavailable: the Hub does not answer, or gives none.
    """
    before = await hub.tokens_noted(account(), NOTE)
    token = await _make(hub, path)
    for id_ in before:
        await hub.revoke(account(), id_)
    return token


def rotate_running(state: Path) -> Path:
    """Exchange the token of the ``benchpool up`` of this state folder; return where it is.

    Errors: Unavailable: none runs there, or its Hub does not answer.
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
    """Renew the token of a ``benchpool up`` that runs for months, for ever."""
    while True:
        await asyncio.sleep(LOOK_S)
        hub = HubApi(hub_url, secrets(folder).hub_token)
        try:
            # A Hub that is just started again is asked tomorrow.
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
