"""Child processes of parking: line-based queries of processes that may hang in the driver."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import IO, cast

_ENDING_S = 1.0
_BLOCK = 65536


def start(module: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a module as a process for ``ask`` and ``answer``."""
    return subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environ),
        start_new_session=True,
    )


def ask(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Write a line to a process; no effect if it has ended."""
    stdin = cast("IO[bytes]", process.stdin)
    with contextlib.suppress(OSError):
        stdin.write(line + b"\n")
        stdin.flush()


def answer(process: subprocess.Popen[bytes], within_s: float) -> bytes | None:
    """Return the next line; an empty one if the process has ended, None on timeout."""
    stdout = cast("IO[bytes]", process.stdout)
    found, until = b"", time.monotonic() + within_s
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while not found.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not selector.select(left):
                return None
            more = os.read(stdout.fileno(), _BLOCK)
            if not more:
                return b""
            found += more
    return found.rstrip()


def abandon(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, without waiting if it hangs in the kernel."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_ENDING_S)
