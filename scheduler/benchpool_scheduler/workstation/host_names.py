"""The host names of this machine that browsers may use."""

from __future__ import annotations

import re
import socket
from contextlib import suppress

_USABLE = re.compile(r"[!-~]+")
"""Characters that are valid in a certificate and in a list separated by spaces."""


def of_machine() -> tuple[str, ...]:
    """Return the distinct short and full host names, without names that browsers cannot use.

    Linux allows a host name of 64 characters, and one that is not text. The resolver allows labels
    of at most 63.
    """
    found = [socket.gethostname()]
    with suppress(UnicodeError):
        found.append(socket.getfqdn())
    return tuple(dict.fromkeys(name for name in found if _USABLE.fullmatch(name)))
