"""Every system call of store, runtime and supervisor fails once; the pool converges by itself.

The calls are those on files of the state folder, and those that make processes, pipes and
descriptors; each with "no space", "input/output error" and "too many open files".
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
from pathlib import Path

import pytest

from benchpool_support import FOLDER, failing_calls

# Alone: a job that ends before it could be followed is met on a quiet machine only.
pytestmark = [pytest.mark.slow, pytest.mark.alone]

CALLS = {
    "scheduler": (
        *("mkdir", "rename", "pipe", "memfd_create", "posix_spawn", "dup", "epoll_ctl"),
        *("pidfd_open", "open", "read", "write", "pwrite", "fsync"),
    ),
    "supervisor": (
        *("mkdir", "rename", "unlink", "pipe", "fork", "dup"),
        *("open", "read", "write", "pwrite", "fsync"),
    ),
}
"""``fsync`` is ``fdatasync`` too, ``open`` is ``openat`` too."""

ERRORS = (errno.ENOSPC, errno.EIO, errno.EMFILE)

MOST = int(os.environ.get("BENCHPOOL_FAILING_CALLS", "2"))
"""So many calls of a name fail, one after the other, each in a round of its own."""


async def went(state: Path, library: Path, who: str, number: int) -> list[dict[str, object]]:
    """Let the calls fail in one pool; return how each round went."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", failing_calls.__name__, str(state), str(MOST)),
        env={**os.environ, "PYTHONPATH": FOLDER, **failing_calls.environment(state, library)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    points = "".join(f"{who} {call} {number}\n" for call in CALLS[who])
    output, _ = await process.communicate(points.encode())
    assert process.returncode == 0
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", ERRORS, ids=[errno.errorcode[number] for number in ERRORS])
@pytest.mark.parametrize("who", CALLS)
async def test_a_call_that_fails_once_is_made_good_without_a_restart(
    tmp_path: Path, who: str, number: int
) -> None:
    library = failing_calls.compiled(tmp_path)
    if library is None:
        pytest.skip("no C compiler (gcc or cc): nothing can make a system call fail")
    rounds = await went(tmp_path / "state", library, who, number)
    assert [one for one in rounds if one["wrong"]] == []
    reached = {str(one["point"]).split()[1] for one in rounds if one["failed"]}
    assert reached == set(CALLS[who]), "a point is made by nobody any more"
