"""Numbered lines of a log, each with its own address for sharing."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from benchpool_scheduler.web.log_text import plain

BEFORE, AFTER = 100, 400
"""Number of lines shown before and after the requested one."""

MOST_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes searched for a line."""

LONGEST = 4000
"""Maximum number of bytes shown of a line."""

Read = Callable[[int], Awaitable[tuple[int, bytes]]]
"""Function that reads from an offset; returns the next offset and the bytes, none at the end."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, counted from 1."""

    number: int
    text: str
    wanted: bool


async def around(read: Read, wanted: int) -> tuple[LogLine, ...]:
    """Return the lines around the requested one; the last ones for 0 or a missing line."""
    kept: deque[tuple[int, bytes]] = deque(maxlen=BEFORE + AFTER + 1 if wanted else AFTER)
    async for number, line in _lines(read):
        if wanted and number > wanted + AFTER:
            break
        kept.append((number, line))
        while wanted and kept[0][0] < min(wanted - BEFORE, number):
            kept.popleft()
    return tuple(
        LogLine(number, plain(line[:LONGEST]).replace("\n", " "), number == wanted)
        for number, line in kept
    )


async def _lines(read: Read) -> AsyncIterator[tuple[int, bytes]]:
    offset, number, rest = 0, 0, b""
    while offset < MOST_BYTES:
        offset, piece = await read(offset)
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            number += 1
            yield number, line
        if not piece:
            break
    if rest:
        yield number + 1, rest
