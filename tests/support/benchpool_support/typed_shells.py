"""Shells inside workers, with input from a test."""

from __future__ import annotations

import asyncio

from benchpool_scheduler.runtime.shells import ShellChannel
from benchpool_support.waiting import PATIENCE_S

CATCHES = (
    b"""sh -c 'trap "n=2" INT; n=; echo "<$((1+6))>"; while :; do """
    b"""sleep 0.1; test -z "$n" || echo "<$((40+n))>"; done'\n"""
)
"""Program whose output differs from its input, which the terminal also echoes.

It reports the interruption again and again, because a terminal sends the signal first and then
discards its output.
"""

CATCHING = b"<7>"
"""Its first output, in characters that no job ID contains."""

CAUGHT = b"<42>"
"""Its output after an interruption."""


class TypedShell:
    """Shell with typed input, and its output so far."""

    def __init__(self, channel: ShellChannel) -> None:
        self.channel = channel
        self.printed = b""

    async def until(self, text: bytes) -> None:
        """Read until a text is printed."""
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
    """Return a shell that has started: input before it sets up its terminal may be lost."""
    shell = TypedShell(channel)
    await channel.write(b"echo rea''dy\n")
    await shell.until(b"ready")
    return shell
