"""What files and folders take on their disk, counted by ``du`` beside the loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

MOST_S = 900.0
"""A count that takes longer is given up."""

GONE_S = 1.0
"""So long a count that was killed is waited for: on a disk that hangs, it hangs too."""

BLOCK = 512
"""Bytes of what ``st_blocks`` counts (POSIX)."""

AT_ONCE = 500
"""Paths of one command: their names together must fit into its arguments."""


async def counted(paths: Sequence[Path]) -> dict[Path, int]:
    """Return the bytes that each takes on its disk; what cannot be told is not in the answer.

    ``du`` counts a file with several names once and stays on one file system. What it may not read
    is not counted.
    """
    found: dict[Path, int] = {}
    for first in range(0, len(paths), AT_ONCE):
        said = await _du(paths[first : first + AT_ONCE])
        for line in said.split(b"\0"):
            size, _, name = line.partition(b"\t")
            if size.isdigit():
                found[Path(name.decode(errors="surrogateescape"))] = int(size) * 1024
    return found


def of_files(files: Iterable[Path]) -> dict[Path, int]:
    """Return the bytes that each file takes on its disk; one that is gone is not in the answer.

    Blocks: a few microseconds for each.
    """
    found: dict[Path, int] = {}
    for path in files:
        with contextlib.suppress(OSError):
            found[path] = path.lstat().st_blocks * BLOCK
    return found


async def _du(paths: Sequence[Path]) -> bytes:
    # Shielded: a start that is cut short would leave its pipe open.
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *("du", "-skx0", "--", *map(str, paths)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    )
    try:
        async with asyncio.timeout(MOST_S):
            du = await asyncio.shield(starting)
            said, _ = await du.communicate()
    except OSError:  # it did not start, or takes too long
        return b""
    finally:
        await _end(starting)
    return said


async def _end(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """End a count that was given up, and close what it would have said it through."""
    try:
        du = await starting
    except OSError:
        return
    if du.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            du.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GONE_S):
                await du.communicate()
