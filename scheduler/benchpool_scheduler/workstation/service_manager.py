"""Notifications of ``benchpool up`` to systemd, if systemd started it: ready, alive, ending.

The protocol is a datagram to the socket in ``NOTIFY_SOCKET`` (sd_notify). Without that variable all
methods do nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import MutableMapping


class ServiceManager:
    """Connection to the service manager that started the process.

    Args:
        environ: Our environment. Variables for this process alone are removed from it, so that no
            child notifies in our name.
    """

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        microseconds = environ.pop("WATCHDOG_USEC", "")
        environ.pop("WATCHDOG_PID", None)
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._alive_s = int(microseconds) / 2e6 if microseconds.isdecimal() else None

    def ready(self, text: str) -> None:
        """Report that all servers answer, with the text for ``systemctl status``."""
        self._notify("READY=1", f"STATUS={text}")

    def status(self, text: str) -> None:
        """Set the text for ``systemctl status``."""
        self._notify(f"STATUS={text}")

    def ending(self) -> None:
        """Report that the process ends as requested."""
        self._notify("STOPPING=1")

    async def stay_alive(self) -> None:
        """Report forever that the loop runs; systemd restarts a process that hangs."""
        while self._address and self._alive_s is not None:
            self._notify("WATCHDOG=1")
            await asyncio.sleep(self._alive_s)

    def _notify(self, *facts: str) -> None:
        if not self._address:
            return
        with (
            contextlib.suppress(OSError),  # the receiver is gone
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as way,
        ):
            way.connect(self._address)
            way.send("\n".join(" ".join(fact.split()) for fact in facts).encode())
