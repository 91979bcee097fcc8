"""Reload of ``notifications.yaml`` on a signal, with its result in the log."""

from __future__ import annotations

import logging

from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service import Pool

log = logging.getLogger("benchpool_scheduler")


async def notifications(pool: Pool) -> None:
    """Apply the notification settings of the file. If it is invalid, log that and keep the old
    ones.
    """
    try:
        changed = await pool.deliveries.reload()
    except BenchpoolError as refused:
        log.error("notification settings unchanged: %s", refused.message)
        return
    log.info("notifications: %s", "in force, changed" if changed else "no changes")
