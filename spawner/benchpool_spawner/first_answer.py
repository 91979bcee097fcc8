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

UNANSWERED = "unanswered"
"""In the state of a spawner whose start waits for the first answer."""

AGAIN = "Start it again; if it ends so again, an administrator finds what it said in the Hub's log."

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

    _unanswered = False
    """A start waits for the first answer."""
    _taken_up = False
    """The start was that of a Hub before this one, and nobody waits for its answer yet."""

    async def start(self) -> Any:
        """Start the server, and wait until it answers.

        Raises:
            StartRefused: It ended, or it does nothing.
        """
        self._unanswered = self._taken_up = False
        where = await super().start()  # type: ignore[misc]
        if self.server is None or self.internal_ssl:
            return where  # the Hub has the certificates, and waits by its clock
        self.server.ip, self.server.port = where
        self._unanswered = True
        self._write_down()
        try:
            answered = await self._answers()
        except NothingHappens:
            raise self._not_answered() from None
        finally:
            self._unanswered = False
        if not answered:
            raise await self._ended()
        return where

    async def poll(self) -> int | None:
        """Return None while the server runs, else its exit code.

        A Hub that was restarted amid the start asks this first, and would then wait by its clock:
        so it is told when the server has answered or ended. Of one that does nothing it is told
        that it ended; then it stops what is left of it.
        """
        status: int | None = await super().poll()  # type: ignore[misc]
        waits, self._taken_up = self._taken_up, False
        if status is not None or not waits or self.server is None:
            return status
        try:
            await self._answers()
        except NothingHappens:
            self.log.warning("%s", self._not_answered().message)
            return 1
        self._unanswered = False
        self._write_down()
        status = await super().poll()  # type: ignore[misc]
        return status

    def get_state(self) -> dict[str, Any]:
        """Return also whether the start still waits for an answer."""
        state: dict[str, Any] = super().get_state()  # type: ignore[misc]
        return {**state, UNANSWERED: True} if self._unanswered else state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up a start that an earlier Hub began."""
        super().load_state(state)  # type: ignore[misc]
        self._unanswered = self._taken_up = bool(state.get(UNANSWERED))

    async def _answers(self) -> bool:
        """Wait for the first answer; return False at the server's end. Errors: NothingHappens."""
        return await while_it_works(
            self.server.wait_up(timeout=LONGEST_S, http=True, extra_path="api"),
            until_ended(self.pid),
            lambda: processor_s(self.pid),
            self.quiet_timeout,
        )

    def _write_down(self) -> None:
        """Let a Hub that is started later know how far the start is."""
        self.orm_spawner.state = self.get_state()
        self.user.db.commit()

    def _not_answered(self) -> StartRefused:
        return StartRefused(
            f"The notebook server of {self.user.name} did not answer, and did nothing for "
            f"{self.quiet_timeout:.0f} s: it was ended. {AGAIN}",
            reason="server-start",
            status_code=503,
            retry_after_s=30,
        )

    async def _ended(self) -> StartRefused:
        status: object = None
        with suppress(Exception):
            status = await self.poll()
        return StartRefused(
            f"The notebook server of {self.user.name} ended (exit code {status}) before it "
            f"answered. {AGAIN}",
            reason="server-start",
            status_code=503,
        )
