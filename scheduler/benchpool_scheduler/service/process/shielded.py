"""Commands are carried out as a whole, whatever becomes of whoever asked."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

Answer = TypeVar("Answer")


async def shielded(command: Coroutine[None, None, Answer]) -> Answer:
    """Carry a command to its end even when whoever asked no longer waits for the answer."""
    return await asyncio.shield(asyncio.ensure_future(command))
