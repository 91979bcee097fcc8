"""Wait for sockets and handles of processes, including descriptors with high numbers."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Sequence
from typing import TypeVar

Waited = TypeVar("Waited", int, socket.socket)


def readable_within(seconds: float, waited: Sequence[Waited]) -> list[Waited]:
    """Return the readable ones as soon as there is one, or none after the timeout.

    ``select.select`` rejects every descriptor above 1023, which a test with a thousand connections
    exceeds.
    """
    with selectors.DefaultSelector() as selector:
        for one in waited:
            selector.register(one, selectors.EVENT_READ)
        answered = {key.fd for key, _ in selector.select(seconds)}
    return [one for one in waited if (one if isinstance(one, int) else one.fileno()) in answered]
