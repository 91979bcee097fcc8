"""The names of this machine under which a browser may come."""

from __future__ import annotations

import re
import socket
from contextlib import suppress

_USABLE = re.compile(r"[!-~]+")
"""What a certificate and a list separated by spaces can hold."""


def of_machine() -> tuple[str, ...]:
    """Return the host name and the full name, each once; names that no browser can ask for are out.

    Linux takes a host name of 64 characters, and one that is not text. The resolver takes labels
    of at most 63.
    """
    found = [socket.gethostname()]
    with suppress(UnicodeError):
        found.append(socket.getfqdn())
    return tuple(dict.fromkeys(name for name in found if _USABLE.fullmatch(name)))
