"""Shells inside workers, as a test types into them."""

from __future__ import annotations

import asyncio

from benchpool_scheduler.runtime.shells import ShellChannel
from benchpool_support.waiting import PATIENCE_S

CATCHES = (
    b"""sh -c 'trap "n=2" INT; n=; echo "<$((1+6))>"; while :; do """
    b"""sleep 0.1; test -z "$n" || echo "<$((40+n))>"; done'\n"""
)
"""What it prints is otherwise than what is typed, which the terminal shows too. It says again and
again that it was interrupted: a terminal sends the signal first, and then forgets what was printed.
"""

CATCHING = b"<7>"
"""What it prints first; the signs are such as no id of a job has."""

CAUGHT = b"<42>"
"""What it prints after an interruption."""


class TypedShell:
    """A shell that is typed into, and what it printed so far."""

    def __init__(self, channel: ShellChannel) -> None:
        self.channel = channel
        self.printed = b""

    async def until(self, text: bytes) -> None:
        """Read until a text was printed."""
        async with asyncio.timeout(PATIENCE_S):
            while text not in self.printed:
                piece = await self.channel.read()
                assert piece, self.printed
                self.printed += piece

    async def end(self) -> int | None:
        """Read to the end."""
        async with asyncio.timeout(PATIENCE_S):
            while piece := await self.channel.read():
                self.printed += piece
        return await self.channel.close()


async def ready(channel: ShellChannel) -> TypedShell:
    """Return a shell that has begun: what was typed before it set up its terminal may be lost."""
    shell = TypedShell(channel)
    await channel.write(b"echo rea''dy\n")
    await shell.until(b"ready")
    return shell
