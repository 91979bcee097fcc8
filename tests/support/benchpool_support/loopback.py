"""Ports of this machine's loopback, and whether something answers there."""

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
"""Neither the kernel gives them to whoever asks for any port, nor benchpool to what it starts."""

_held: list[IO[bytes]] = []


def free_port() -> int:
    """Return a port that nobody listens on, and that no other process of tests is given.

    Until the program listens that it is for, nobody else may come to it: it stays with this
    process as long as that lives, and is none of those that the kernel chooses by itself.
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
    """Tell whether a page answers well."""
    try:
        return direct.get(url, timeout=30).status_code == 200
    except httpx.HTTPError:
        return False
