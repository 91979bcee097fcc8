"""``FirstAnswerMixin``: waits for a notebook server while its start makes progress.

A busy machine gives a start little processor time, and it may print nothing for minutes. The end of
the process is noticed immediately, because the kernel reports it.
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
"""Step and limit of the processor time that counts as progress, in seconds. A start uses a few
seconds, but an endless loop uses any amount.
"""

LONGEST_S = 24 * 3600.0
"""Value for the Hub's own timeouts, in seconds. They must not end a start that makes progress."""

UNANSWERED = "unanswered"
"""State key of a spawner whose start waits for the first answer."""

AGAIN = "Start it again. If it ends again, an administrator finds its output in the Hub's log."

TICKS_OF_A_SECOND = os.sysconf("SC_CLK_TCK")


class NothingHappens(Exception):
    """The start used no processor time for too long."""


def processor_s(pid: int) -> float:
    """Return the processor time of a process and of its descendants, in seconds.

    >>> processor_s(os.getpid()) > 0
    True
    """
    ticks = 0
    for one, _ in ((pid, 0), *process_notes.tree(pid)):
        fields = process_identity.stat_fields(one)
        if fields is not None:
            ticks += sum(map(int, fields[11:15]))  # of itself and of ended children
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
    """Wait for an answer or the end of the process. Return whether the answer came.

    Args:
        used_s: Returns the processor time that the start has used so far, in seconds.
        quiet_s: Maximum time without progress, in seconds. Errors: NothingHappens.
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
    """Wait until a process has ended. It may still be a zombie then."""
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
    """Mixin for spawners of local processes: a start is complete with the first answer.

    Place it first among the base classes. Set a long ``start_timeout``. ``http_timeout`` has no
    effect, because the server has already answered.
    """

    quiet_timeout = Float(
        90.0,
        help="""
        Timeout of a start while the notebook server uses no processor time and does not answer, in
        seconds.
        """,
    ).tag(config=True)

    # Attributes of the base classes.
    pid: int
    user: Any
    server: Any
    orm_spawner: Any
    internal_ssl: bool

    _unanswered = False
    """Whether a start waits for the first answer."""
    _taken_up = False
    """Whether an earlier Hub began the start, and no task waits for its answer yet."""

    async def start(self) -> Any:
        """Start the server and wait until it answers.

        Raises:
            StartRefused: The server ended, or makes no progress.
        """
        self._unanswered = self._taken_up = False
        where = await super().start()  # type: ignore[misc]
        if self.server is None or self.internal_ssl:
            return where  # the Hub has the certificates, so it waits with its own timeout
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

        A Hub that was restarted during the start calls this first, and would then apply its
        timeout. Therefore the answer waits until the server has answered or ended. A server without
        progress is reported as ended, so that the Hub stops the rest of it.
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
        """Return the state, with a mark while the start waits for an answer."""
        state: dict[str, Any] = super().get_state()  # type: ignore[misc]
        return {**state, UNANSWERED: True} if self._unanswered else state

    def load_state(self, state: dict[str, Any]) -> None:
        """Resume a start that an earlier Hub began."""
        super().load_state(state)  # type: ignore[misc]
        self._unanswered = self._taken_up = bool(state.get(UNANSWERED))

    async def _answers(self) -> bool:
        """Wait for the first answer. Return False if the server ends. Errors: NothingHappens."""
        return await while_it_works(
            self.server.wait_up(timeout=LONGEST_S, http=True, extra_path="api"),
            until_ended(self.pid),
            lambda: processor_s(self.pid),
            self.quiet_timeout,
        )

    def _write_down(self) -> None:
        """Store the progress of the start for a Hub that is started later."""
        self.orm_spawner.state = self.get_state()
        self.user.db.commit()

    def _not_answered(self) -> StartRefused:
        return StartRefused(
            f"The notebook server of {self.user.name} was stopped: it did not answer and was idle "
            f"for {self.quiet_timeout:.0f} s. {AGAIN}",
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
