"""Watches of objects: a complete list first, then each change, for the lifetime of the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TypeVar

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.kube import Change, KubeFailure, Listed, Reflector, Vanished

log = logging.getLogger(__name__)

T = TypeVar("T")
DEAF_S = 10.0


async def wait_until_listed(what: str, changes: AsyncIterator[Change[T]], namespace: str) -> None:
    """Wait until all existing objects are listed. Errors: Unavailable."""
    try:
        async for change in changes:
            if isinstance(change, Listed):
                return
    except KubeFailure as failed:
        raise Unavailable(
            f"The {what} of {namespace} cannot be read. The API server reports: {failed}. Check "
            "that benchpool's definitions are installed and that its account may list and watch "
            "them.",
            code="kubernetes-refuses",
        ) from failed


async def follow(
    reflector: Reflector[T],
    changes: AsyncGenerator[Change[T], None],
    take_in: Callable[[T, bool], None],
) -> None:
    """Call ``take_in`` with each changed object and whether it was deleted; runs forever."""
    while True:
        try:
            async with aclosing(changes):
                async for change in changes:
                    if not isinstance(change, Listed):
                        take_in(change.item, isinstance(change, Vanished))
        except KubeFailure as failed:
            log.error("watch of applied objects failed, retrying: %s", failed)
            await asyncio.sleep(DEAF_S)
        changes = reflector.changes()
