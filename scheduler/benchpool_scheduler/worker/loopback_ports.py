"""Ports of the loopback for programs that start to listen later."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

LOOPBACK = "127.0.0.1"
FIRST, LAST = 22_000, 28_000
"""Preferred range of ports.

Linux assigns dynamic ports from 32,768 on, for example to kernels of notebooks.
"""
TRIES = 100


def free_port(taken: Collection[int] = ()) -> int:
    """Return a port without a listener, for a program that will listen on it.

    A port of the preferred range is not assigned dynamically in the meantime.

    Args:
        taken: Ports that are reserved for other programs.

    Raises:
        OSError: There is none.

    >>> one = free_port()
    >>> free_port(taken=[one]) != one
    True
    """
    for port in random.SystemRandom().sample(range(FIRST, LAST), TRIES):
        if port not in taken and _is_free(port):
            return port
    while (port := _any_port()) in taken:
        continue
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as asked:
        try:
            asked.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _any_port() -> int:
    with socket.socket() as asked:
        asked.bind((LOOPBACK, 0))
        return int(asked.getsockname()[1])
