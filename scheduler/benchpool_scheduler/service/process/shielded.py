"""Commands that run to their end even if the caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

Answer = TypeVar("Answer")


async def shielded(command: Coroutine[None, None, Answer]) -> Answer:
    """Run a command to its end, even if its caller no longer waits for the result."""
    return await asyncio.shield(asyncio.ensure_future(command))
