"""Removal of empty cgroups that killed supervisors left."""

from __future__ import annotations

import asyncio
import contextlib

from benchpool_scheduler.worker.supervisor import cgroups

EVERY_S = 600.0


async def keep_swept() -> None:
    """Remove empty cgroups now and every ten minutes, forever."""
    while True:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(cgroups.sweep_empty)
        await asyncio.sleep(EVERY_S)
