"""What ``benchpool up`` tells systemd, where systemd started it: ready, alive, ending.

The protocol is a datagram to the socket that ``NOTIFY_SOCKET`` names (sd_notify). Without one all
of this does nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import MutableMapping


class ServiceManager:
    """Speaks to whoever started the process.

    Args:
        environ: Our environment. What concerns this process alone is taken out of it, so that no
            child speaks in our name.
    """

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        microseconds = environ.pop("WATCHDOG_USEC", "")
        environ.pop("WATCHDOG_PID", None)
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._alive_s = int(microseconds) / 2e6 if microseconds.isdecimal() else None

    def ready(self, text: str) -> None:
        """Say that everything answers, and what ``systemctl status`` shows."""
        self._say("READY=1", f"STATUS={text}")

    def status(self, text: str) -> None:
        """Say what ``systemctl status`` shows."""
        self._say(f"STATUS={text}")

    def ending(self) -> None:
        """Say that the process ends as it was told to."""
        self._say("STOPPING=1")

    async def stay_alive(self) -> None:
        """Say again and again that the loop turns, for ever; a process that hangs is replaced."""
        while self._address and self._alive_s is not None:
            self._say("WATCHDOG=1")
            await asyncio.sleep(self._alive_s)

    def _say(self, *facts: str) -> None:
        if not self._address:
            return
        with (
            contextlib.suppress(OSError),  # nobody listens any more
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as way,
        ):
            way.connect(self._address)
            way.send("\n".join(" ".join(fact.split()) for fact in facts).encode())
