"""Reads `notifications.yaml` again when a signal asks for it, and logs what came of it."""

from __future__ import annotations

import logging

from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service import Pool

log = logging.getLogger("benchpool_scheduler")


async def notifications(pool: Pool) -> None:
    """Put what the file says in force; one that is wrong is logged, and the old one stays."""
    try:
        changed = await pool.deliveries.reload()
    except BenchpoolError as refused:
        log.error("notifications stay as they were: %s", refused.message)
        return
    log.info("notifications: %s", "in force, changed" if changed else "nothing changes")
