"""Ports of this machine's loopback, and a check whether a server answers there."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

import httpx

from benchpool_support import direct

PORTS = range(28_000, 32_000)
"""Ports for tests, which neither the kernel nor benchpool assigns to other programs."""

_held: list[IO[bytes]] = []


def free_port() -> int:
    """Return an unused port that no other test process receives.

    The port stays reserved for this process until it ends. The kernel does not choose it for other
    programs.
    """
    folder = Path(tempfile.gettempdir()) / f"benchpool-ports-of-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        lock = (folder / str(port)).open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as one:
                one.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
        else:
            _held.append(lock)
            return port
    raise OSError("every port that tests may have is taken")


def answers(url: str) -> bool:
    """Return whether a page answers successfully."""
    try:
        return direct.get(url, timeout=30).status_code == 200
    except httpx.HTTPError:
        return False
