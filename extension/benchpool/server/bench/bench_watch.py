"""Monitor of this server's bench: reports its activity and follows the scheduler's commands."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchpool.server.bench import gpu_release, note_file, reports
from benchpool.server.bench.bench_state import BenchNow, GivenBack
from benchpool.server.bench.kernel_watch import KernelWatch
from benchpool.server.bench.note_file import LeftNote
from benchpool.server.bench.open_terminals import OpenTerminals
from benchpool.server.bench.scheduler_link import SchedulerLink
from benchpool_scheduler import phrases
from benchpool_scheduler.contract.idle_benches import (
    BenchActivity,
    BenchCommand,
    BenchIdleness,
)
from benchpool_scheduler.errors import Refused

LOOK_S = 2.0
KERNEL_ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"
"""Jupyter's event for kernel starts, so that their first cell is counted too."""

ONE_MACHINE = "BENCHPOOL_SERVER_START"
"""Variable set by single-machine spawners: there a server can continue without its GPUs."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class BenchWatch:
    """State of this server's bench, and the actions on it.

    Attributes:
        folder: Folder that the server serves; notes are written there.
        environ: The server's own environment, copied to kernels and terminals.
    """

    kernels: KernelWatch
    terminals: OpenTerminals
    link: SchedulerLink
    folder: Path
    environ: MutableMapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], float] = time.monotonic
    given_back: GivenBack | None = None
    _reported: BenchActivity | None = None
    _reported_at: float = 0.0
    _noted: bool = False
    _stop_note: LeftNote | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, server_app: Any, link: SchedulerLink) -> BenchWatch:
        """Return the watch of a Jupyter server."""
        watch = cls(
            KernelWatch(server_app.kernel_manager),
            OpenTerminals.of(server_app.web_app.settings, os.environ),
            link,
            Path(getattr(server_app.contents_manager, "root_dir", None) or "."),
        )

        async def on_kernel(**_change: Any) -> None:
            watch.kernels.look()
            watch._wake.set()

        server_app.event_logger.add_listener(schema_id=KERNEL_ACTIONS, listener=on_kernel)
        return watch

    async def run(self) -> None:
        """Check the bench in an endless loop."""
        while True:
            try:
                await self.look()
            except Exception:  # any error: the next check follows
                log.exception("bench check failed")
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._wake.wait()
            self._wake.clear()

    async def look(self) -> None:
        """Check once; report if due, and follow the command in the answer."""
        if not self.link.wanted or (self.given_back is not None and self.given_back.done):
            self.kernels.look()
            return
        if self.given_back is not None:
            await self._report_released(self.given_back)
            return
        reported, since_s = self._reported, self.clock() - self._reported_at
        now = await self.activity()
        if reports.is_due(now, reported, since_s, self.link.answer):
            await self._report(now)

    async def activity(self) -> BenchActivity:
        """Return the activity of kernels and terminals, as reported to the scheduler."""
        seen, running = self.kernels.look(), await self.terminals.lately()
        return BenchActivity(
            kernels=seen.kernels,
            busy_kernels=seen.busy,
            executions=seen.executions,
            terminal_programs=None if running is None else len(running.programs),
            gives_up=ONE_MACHINE in self.environ,
            noted=self._noted,
        )

    async def now(self) -> BenchNow:
        """Return the state for a page."""
        seen = await self.activity()
        return BenchNow(
            kernels=seen.kernels,
            busy_kernels=seen.busy_kernels,
            executions=seen.executions,
            terminal_programs=seen.terminal_programs,
            gives_up=seen.gives_up,
            idleness=self.link.answer,
            given_back=self.given_back,
        )

    async def keep(self) -> BenchNow:
        """Keep the bench for a while. Raises the scheduler's errors."""
        await self.link.keep()
        return await self.now()

    async def give_back(self) -> BenchNow:
        """Release the GPUs at their owner's request.

        Raises:
            Refused: Programs run in terminals of a server that would continue with them.
        """
        running = await self.terminals.scan()
        if ONE_MACHINE in self.environ and running is not None and running.programs:
            names = sorted({one.name for one in running.programs})
            raise Refused(
                f"{phrases.count(len(running.programs), 'program')} "
                f"{phrases.is_are(len(running.programs))} running in terminals "
                f"({', '.join(names[:3])}). End them first, or stop the server on the Hub's page.",
                code="bench-in-use",
                numbers={"programs": len(running.programs)},
            )
        await self.link.release()
        self._reported = None  # the next check asks for the command at once
        self._wake.set()
        return await self.now()

    # ------------------------------------------------------------------ commands

    async def _report(self, now: BenchActivity) -> None:
        self._reported, self._reported_at = now, self.clock()
        answer = await self.link.report(now)
        if answer is None:
            return
        if answer.command is BenchCommand.RELEASE:
            await self._release(answer, now)
        elif answer.command is BenchCommand.NOTE or answer.stopping:
            self._note_stop(answer)
        else:
            self._withdraw_stop_note()

    def _note_stop(self, answer: BenchIdleness) -> None:
        """Leave the note about the coming stop, once, and report it."""
        if not self._noted:
            self._stop_note = self._leave_note(answer, stopped=True)
            self._noted, self._reported = True, None
            self._wake.set()

    def _withdraw_stop_note(self) -> None:
        """Remove the note about a stop that did not happen. A later stop leaves a new one."""
        note, self._stop_note, self._noted = self._stop_note, None, False
        if note is not None:
            try:
                note_file.withdraw(note)
            except OSError as failed:
                log.warning("cannot remove the note %s: %s", note.path, failed)

    async def _release(self, answer: BenchIdleness, reported: BenchActivity) -> None:
        """Take the GPUs from all kernels and terminals, after a last activity check."""
        await self.terminals.scan()
        if reports.has_new_work(await self.activity(), reported):
            self._reported = None  # reported at once; the scheduler decides again
            self._wake.set()
            return
        note = self._leave_note(answer, stopped=False)
        gpu_release.hide(self.environ)
        kernels = await gpu_release.restart_kernels(self.kernels.manager)
        running = await self.terminals.scan()
        waiting = () if running is None else running.waiting
        await gpu_release.close_terminals(self.terminals.manager, waiting)
        self.given_back = GivenBack(
            at=datetime.now().astimezone(),
            gpus=len(answer.gpus),
            asked=answer.asked,
            idle_s=answer.idle_s,
            kernels=kernels,
            note=None if note is None else note.path.name,
            done=False,
        )
        await self._report_released(self.given_back)

    async def _report_released(self, given_back: GivenBack) -> None:
        if await self.link.released():
            self.given_back = replace(given_back, done=True)

    def _leave_note(self, answer: BenchIdleness, *, stopped: bool) -> LeftNote | None:
        text = phrases.idle_note(
            at=datetime.now().astimezone(),
            user=answer.user,
            server=answer.server,
            gpus=len(answer.gpus),
            idle_s=answer.idle_s,
            coverage=answer.coverage,
            stopped=stopped,
            asked=answer.asked,
        )
        try:
            return note_file.leave(self.folder, phrases.IDLE_NOTE_FILE, text)
        except OSError as failed:
            log.warning("cannot write the note to %s: %s", self.folder, failed)
            return None
