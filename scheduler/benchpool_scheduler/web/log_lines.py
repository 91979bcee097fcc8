"""Lines of a log with their numbers, so that each has an address that can be pasted into a chat."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from benchpool_scheduler.web.log_text import plain

BEFORE, AFTER = 100, 400
"""Lines that are shown around the one that is asked for."""

MOST_BYTES = 16 * 1024 * 1024
"""A line further down is not looked for."""

LONGEST = 4000
"""Bytes of a line that are shown."""

Read = Callable[[int], Awaitable[tuple[int, bytes]]]
"""Reads from an offset: where the next piece begins, and the bytes; none at the end."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, counted from 1."""

    number: int
    text: str
    wanted: bool


async def around(read: Read, wanted: int) -> tuple[LogLine, ...]:
    """Return the lines around one; the last ones for 0, and for a line that is not there."""
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
