"""Supervisor of the Hub of ``benchpool up``: a loop of restarts without a limit.

The first start differs: its errors are raised at once for the user at the terminal. Like a restart,
it has no fixed timeout and continues while there is progress.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from benchpool_scheduler.app import start_status
from benchpool_scheduler.app.start_status import StartStatus
from benchpool_scheduler.client.answers import NOT_BENCHPOOL
from benchpool_scheduler.errors import BenchpoolError, InvalidInput, Unavailable
from benchpool_scheduler.store import hub_database
from benchpool_scheduler.store.copies import CopyFailed
from benchpool_scheduler.workstation.hub_api import POLL_S, AwaitedAddress, QuietTimer, wait_until
from benchpool_scheduler.workstation.hub_process import HubProcess
from benchpool_scheduler.workstation.start_progress import StartProgress
from benchpool_scheduler.workstation.startup_screen import StartupScreen

QUIET_S = 90.0
"""Time without progress after which a start has failed, in seconds; processor time is progress."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
STEADY_S = 60.0
"""Run time after which the delay of restarts is reset, in seconds; until then it doubles."""

T = TypeVar("T")

LOOK_S = 0.5
REPORT_S = 2.0


class HubKeeper:
    """Supervisor that starts the Hub and restarts it whenever it ends.

    Args:
        addresses: Addresses that must answer, in this order, for the start to be complete.
        stop: Set when ``benchpool up`` must end.
    """

    def __init__(
        self,
        hub: HubProcess,
        state: Path,
        addresses: tuple[AwaitedAddress, ...],
        screen: StartupScreen,
        stop: asyncio.Event,
    ) -> None:
        self._hub = hub
        self._state = state
        self._addresses = addresses
        self._screen = screen
        self._stop = stop
        self._pause_s = FIRST_PAUSE_S

    async def start(self) -> None:
        """Start it for the first time; return when all addresses answer, or ``stop`` is set.

        Errors: InvalidInput, Unavailable with the cause as a sentence.
        """
        reporting = asyncio.create_task(self._report_progress())
        try:
            await self._start_once(first=True)
        finally:
            reporting.cancel()

    async def keep(self) -> None:
        """Restart it whenever it ends, until ``stop`` is set."""
        watching = asyncio.create_task(self._report_scheduler())
        try:
            while True:
                began = time.monotonic()
                status = await first_of(self._hub.ended(), self._stop.wait())
                if self._stop.is_set():
                    return
                if time.monotonic() - began > STEADY_S:
                    self._pause_s = FIRST_PAUSE_S
                self._screen.event(
                    "hub-restarts",
                    "JupyterHub exited unexpectedly and is being restarted.",
                    status=status,
                )
                await self._restart()
        finally:
            watching.cancel()

    async def _restart(self) -> None:
        """Restart it until all addresses answer, with growing delays."""
        while not self._stop.is_set():
            await self._rest()
            if self._stop.is_set():
                return
            try:
                await self._start_once(first=False)
            except (BenchpoolError, OSError) as failed:
                await self._hub.stop()
                self._screen.event(
                    "hub-restart-failed",
                    f"{failed}\nJupyterHub is restarted in {self._pause_s:.1f} s. Jobs and "
                    "notebook servers keep running.",
                    pause_s=self._pause_s,
                )
            else:
                if not self._stop.is_set():
                    self._screen.event("hub-restarted", "JupyterHub is running again.")
                return

    async def _rest(self) -> None:
        pause, self._pause_s = self._pause_s, min(self._pause_s * 2, LONGEST_PAUSE_S)
        await first_of(asyncio.sleep(pause), self._stop.wait())

    async def retried(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``ask``, retried while Hub and scheduler are unavailable but
        progress.

        Errors: those of ``ask``; the last Unavailable after ``QUIET_S`` without progress.
        """
        quiet = QuietTimer(QUIET_S, self._progress())
        while True:
            try:
                return await ask()
            except BenchpoolError as failed:
                away = isinstance(failed, Unavailable) or failed.code == NOT_BENCHPOOL
                if not away or self._stop.is_set() or self._hub.has_ended or quiet.is_over():
                    raise
            await asyncio.sleep(POLL_S)

    # ------------------------------------------------------------------ one start

    async def _start_once(self, *, first: bool) -> None:
        start_status.path_of(self._state).unlink(missing_ok=True)
        await self._mend_database(first=first)
        await self._hub.start()
        answers = asyncio.create_task(self._answers())
        ended = asyncio.create_task(self._hub.ended())
        stop = asyncio.create_task(self._stop.wait())
        tasks: set[asyncio.Task[Any]] = {answers, ended, stop}
        if first:
            tasks.add(asyncio.create_task(self._scheduler_fails()))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if stop in done:
            return
        if ended in done:
            self._raise_failure()
            raise self._hub.failure(f"JupyterHub exited with status {ended.result()}")
        if answers not in done:
            self._raise_failure()
        try:
            answers.result()
        except TimeoutError as late:
            raise self._hub.failure(
                f"JupyterHub and scheduler do not answer, and made no progress for {QUIET_S:.0f} s"
            ) from late

    async def _mend_database(self, *, first: bool) -> None:
        """Replace a damaged database by its readable rows. Errors: Unavailable."""
        path = hub_database.path_in(self._state)
        try:
            sentence = await asyncio.to_thread(hub_database.mend, path)
        except (OSError, CopyFailed) as failed:
            raise Unavailable(
                f"The Hub's database {path} is damaged, and its readable rows cannot be written "
                f"to a new file beside it ({failed}). It was not changed. Free disk space there, "
                f"or replace it by a copy from {self._state / 'backups'}.",
                code="hub-damaged",
            ) from failed
        if sentence is not None and first:
            self._screen.note(sentence.rstrip("."))
        elif sentence is not None:
            self._screen.event("hub-database-salvaged", sentence)

    async def _answers(self) -> None:
        for address in self._addresses:
            await wait_until(address, QUIET_S, self._progress())

    def _progress(self) -> Callable[[], object]:
        return StartProgress(self._state, self._hub.log_size, self._hub.processor_s).look

    async def _scheduler_fails(self) -> None:
        """Wait until the scheduler reports that it cannot start."""
        while True:
            now = start_status.read(self._state)
            if now is not None and now.failed is not None:
                return
            await asyncio.sleep(LOOK_S)

    def _raise_failure(self) -> None:
        """Raise the scheduler's own report of a failed start, if there is one."""
        now = start_status.read(self._state)
        if now is None or now.failed is None:
            return
        if now.exit_status == InvalidInput.exit_status:
            raise InvalidInput(now.failed, code="scheduler-failed")
        raise Unavailable(now.failed, code="scheduler-failed")

    # ------------------------------------------------------------------ reports

    async def _report_progress(self) -> None:
        reported = ""
        while True:
            await asyncio.sleep(REPORT_S)
            now = start_status.read(self._state)
            if now is not None and now.failed is None and now.sentence != reported:
                reported = now.sentence
                self._screen.note(reported.rstrip("."))

    async def _report_scheduler(self) -> None:
        """Report restarts and failed starts of the scheduler."""
        before = start_status.read(self._state)
        while True:
            await asyncio.sleep(LOOK_S)
            now = start_status.read(self._state)
            if now is None or now == before:
                continue
            self._report_change(before, now)
            before = now

    def _report_change(self, before: StartStatus | None, now: StartStatus) -> None:
        if now.failed is not None and (before is None or before.failed != now.failed):
            self._screen.event("scheduler-failed", now.failed)
        elif now.ready and (before is None or not before.ready or before.pid != now.pid):
            self._screen.event(
                "scheduler-restarted", "The scheduler is running again.", pid=now.pid
            )


async def first_of(*waits: Coroutine[Any, Any, Any]) -> object:
    """Return the first result of the coroutines; the others are cancelled."""
    tasks = [asyncio.create_task(one) for one in waits]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return next(iter(done)).result()
