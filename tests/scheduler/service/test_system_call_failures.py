"""Each system call of store, runtime and supervisor fails once, and the pool recovers by itself.

Covered are calls on files of the state folder, and calls that create processes, pipes and
descriptors. Each fails with "no space", "input/output error" and "too many open files".
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

# Runs alone: only on a quiet machine can a job end before the runtime follows it.
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
"""System calls by process; ``fsync`` includes ``fdatasync``, and ``open`` includes ``openat``."""

ERRORS = (errno.ENOSPC, errno.EIO, errno.EMFILE)

MOST = int(os.environ.get("BENCHPOOL_FAILING_CALLS", "2"))
"""Number of calls of each name that fail one after the other, each in its own round."""


async def went(state: Path, library: Path, who: str, number: int) -> list[dict[str, object]]:
    """Let the calls fail in one pool; return the result of each round."""
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
async def test_failed_system_call_is_recovered_without_restart(
    tmp_path: Path, who: str, number: int
) -> None:
    library = failing_calls.compiled(tmp_path)
    if library is None:
        pytest.skip("no C compiler (gcc or cc): nothing can make a system call fail")
    rounds = await went(tmp_path / "state", library, who, number)
    assert [one for one in rounds if one["wrong"]] == []
    reached = {str(one["point"]).split()[1] for one in rounds if one["failed"]}
    assert reached == set(CALLS[who]), "a point is made by nobody any more"
