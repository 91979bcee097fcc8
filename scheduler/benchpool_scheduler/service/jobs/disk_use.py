"""Disk use of files and folders, counted by ``du`` outside the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

MOST_S = 900.0
"""Timeout for a count, in seconds."""

GONE_S = 1.0
"""Timeout for a killed count to exit, in seconds; on a hanging disk it may not exit."""

BLOCK = 512
"""Unit of ``st_blocks``, in bytes (POSIX)."""

AT_ONCE = 500
"""Maximum number of paths per command, so that they fit into its arguments."""


async def counted(paths: Sequence[Path]) -> dict[Path, int]:
    """Return the bytes that each path takes on its disk; paths that cannot be counted are left out.

    ``du`` counts a file with several names once and stays on one file system. Unreadable folders
    are not counted.
    """
    found: dict[Path, int] = {}
    for first in range(0, len(paths), AT_ONCE):
        output = await _du(paths[first : first + AT_ONCE])
        for line in output.split(b"\0"):
            size, _, name = line.partition(b"\t")
            if size.isdigit():
                found[Path(name.decode(errors="surrogateescape"))] = int(size) * 1024
    return found


def of_files(files: Iterable[Path]) -> dict[Path, int]:
    """Return the bytes that each file takes on its disk; missing files are left out.

    The call blocks for a few microseconds per file.
    """
    found: dict[Path, int] = {}
    for path in files:
        with contextlib.suppress(OSError):
            found[path] = path.lstat().st_blocks * BLOCK
    return found


async def _du(paths: Sequence[Path]) -> bytes:
    # Shielded, since cancelling the start would leave its pipe open.
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
            output, _ = await du.communicate()
    except OSError:  # not started, or timed out
        return b""
    finally:
        await _end(starting)
    return output


async def _end(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """Kill a count that was given up, and close its pipe."""
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
