"""Waiting for sockets and handles of processes, however high their numbers are."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Sequence
from typing import TypeVar

Waited = TypeVar("Waited", int, socket.socket)


def readable_within(seconds: float, waited: Sequence[Waited]) -> list[Waited]:
    """Return which of them can be read, as soon as one can, else none.

    ``select.select`` refuses every number above 1023; a test with a thousand connections has such.
    """
    with selectors.DefaultSelector() as selector:
        for one in waited:
            selector.register(one, selectors.EVENT_READ)
        answered = {key.fd for key, _ in selector.select(seconds)}
    return [one for one in waited if (one if isinstance(one, int) else one.fileno()) in answered]
