"""Cgroups that nobody is in any more: left by supervisors that were killed, and removed here."""

from __future__ import annotations

import asyncio
import contextlib

from benchpool_scheduler.worker.supervisor import cgroups

EVERY_S = 600.0


async def keep_swept() -> None:
    """Remove them now and from time to time, for ever."""
    while True:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(cgroups.sweep_empty)
        await asyncio.sleep(EVERY_S)
