"""``FirstAnswerMixin``: a start of a notebook server waits while something happens, by no clock.

A busy machine gives a start little processor time, and it may say nothing for minutes. That it
ended is news at once: the kernel tells it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from traitlets import Float
from traitlets.config import LoggingConfigurable

from benchpool_scheduler.worker import process_identity
from benchpool_scheduler.worker.supervisor import process_notes
from benchpool_spawner.refusal import StartRefused

LOOK_S = 1.0
STEP_S, MOST_S = 1.0, 120.0
"""So much processor time is news, up to this sum: a start takes some seconds of it, what turns in
circles takes any amount."""

LONGEST_S = 24 * 3600.0
"""For the Hub's own clock, which is not to end what is still at work."""

TICKS_OF_A_SECOND = os.sysconf("SC_CLK_TCK")


class NothingHappens(Exception):
    """A start at which nothing has been at work for too long."""


def processor_s(pid: int) -> float:
    """Return the processor time of a process and of all below it, in seconds.

    >>> processor_s(os.getpid()) > 0
    True
    """
    ticks = 0
    for one, _ in ((pid, 0), *process_notes.tree(pid)):
        fields = process_identity.stat_fields(one)
        if fields is not None:
            ticks += sum(map(int, fields[11:15]))  # its own, and of children that have ended
    return ticks / TICKS_OF_A_SECOND


async def while_it_works(
    answer: Awaitable[object],
    ended: Awaitable[object],
    used_s: Callable[[], float],
    quiet_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    look_s: float = LOOK_S,
) -> bool:
    """Wait for an answer; return whether it came, and not the end.

    Args:
        used_s: Returns the processor time that the start has used so far, in seconds.
        quiet_s: For so long no processor time may be used. Errors: NothingHappens.
    """
    waits = [asyncio.ensure_future(answer), asyncio.ensure_future(ended)]
    best, since = 0.0, clock()
    try:
        while True:
            done, _ = await asyncio.wait(waits, timeout=look_s, return_when=asyncio.FIRST_COMPLETED)
            if waits[0] in done:
                waits[0].result()
                return True
            if done:
                return False
            now = min(used_s(), MOST_S) // STEP_S
            if now > best:
                best, since = now, clock()
            elif clock() - since > quiet_s:
                raise NothingHappens
    finally:
        for one in waits:
            one.cancel()


async def until_ended(pid: int) -> None:
    """Return when a process has ended; it may be a zombie then."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    try:
        file = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop.add_reader(file, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(file)
        os.close(file)


class FirstAnswerMixin(LoggingConfigurable):
    """What spawners of local processes have in common: their start is over with an answer.

    Mix it in first. ``start_timeout`` is to be long, ``http_timeout`` has nothing left to wait for.
    """

    quiet_timeout = Float(
        90.0,
        help="""
        A start in which a notebook server uses no processor time for so many seconds, and does not
        answer, is given up.
        """,
    ).tag(config=True)

    # What the classes below provide.
    pid: int
    user: Any
    server: Any
    orm_spawner: Any
    internal_ssl: bool
    get_state: Callable[[], dict[str, Any]]

    async def start(self) -> Any:
        """Start the server, and wait until it answers.

        Raises:
            StartRefused: It ended, or it does nothing.
        """
        where = await super().start()  # type: ignore[misc]
        if self.server is None or self.internal_ssl:
            return where  # the Hub has the certificates, and waits by its clock
        self._write_down(where)
        try:
            answered = await while_it_works(
                self.server.wait_up(timeout=LONGEST_S, http=True, extra_path="api"),
                until_ended(self.pid),
                lambda: processor_s(self.pid),
                self.quiet_timeout,
            )
        except NothingHappens:
            raise self._not_answered() from None
        if not answered:
            raise await self._ended()
        return where

    def _write_down(self, where: tuple[str, int]) -> None:
        """Let a Hub that is started meanwhile find the server, as one that runs."""
        self.server.ip, self.server.port = where
        self.orm_spawner.state = self.get_state()
        self.user.db.commit()

    def _not_answered(self) -> StartRefused:
        return StartRefused(
            f"The notebook server of {self.user.name} did not answer, and did nothing for "
            f"{self.quiet_timeout:.0f} s: it was ended. The Hub's log has what it said; start it "
            "again.",
            reason="server-start",
            status_code=503,
            retry_after_s=30,
        )

    async def _ended(self) -> StartRefused:
        status: object = None
        with suppress(Exception):
            status = await self.poll()  # type: ignore[attr-defined]
        return StartRefused(
            f"The notebook server of {self.user.name} ended (exit code {status}) before it "
            "answered: the Hub's log has what it said.",
            reason="server-start",
            status_code=503,
        )
