"""Shell inside a worker of this machine: a terminal here, and a process that enters the worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from benchpool_scheduler.worker import records, shell_terminal
from benchpool_scheduler.worker.supervisor_process import Program

from .running_worker import RunningWorker

PROGRAM = Program.installed("shell_entry")


async def open_shell(run: RunningWorker, rows: int, columns: int, term: str) -> LocalShell:
    """Open a shell inside a running worker. Raises OSError."""
    record = records.read(str(run.folder), records.PROCESS) or {}
    groups = record.get("groups")
    joined = [str(one) for one in groups] if isinstance(groups, list) else []
    command = shell_terminal.entering(PROGRAM, run.handle.pid, term, *joined)
    master, slave = os.openpty()
    try:
        os.set_blocking(master, False)
        shell_terminal.set_size(master, rows, columns)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd="/",
            env={},
            start_new_session=True,
        )
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    return LocalShell(process, master)


class LocalShell:
    """A shell; see ``ShellChannel``. One reader and one writer at a time."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        self._process = process
        self._master = master
        self._closed = False

    async def read(self) -> bytes:
        """Wait for output and return it; return nothing after the shell has ended."""
        loop = asyncio.get_running_loop()
        while not self._closed:
            try:
                return os.read(self._master, shell_terminal.CHUNK)
            except BlockingIOError:
                await self._until(loop.add_reader, loop.remove_reader)
            except OSError:  # no process has the terminal open any more
                return b""
        return b""

    async def write(self, data: bytes) -> None:
        """Write input to the shell. Raises OSError."""
        loop = asyncio.get_running_loop()
        while data:
            if self._closed:
                raise BrokenPipeError(32, "the shell has ended")
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                await self._until(loop.add_writer, loop.remove_writer)

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the terminal."""
        if not self._closed:
            with contextlib.suppress(OSError):
                shell_terminal.set_size(self._master, rows, columns)

    async def close(self) -> int | None:
        """Hang up the terminal, and kill the shell if it ignores that; return its exit code.

        None stands for the exit code after a signal.
        """
        if not self._closed:
            self._closed = True
            os.close(self._master)
        try:
            async with asyncio.timeout(shell_terminal.LEAVES_S):
                code = await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            code = await self._process.wait()
        return code if code >= 0 else None

    async def _until(
        self, begin: Callable[[int, Callable[[], None]], object], end: Callable[[int], object]
    ) -> None:
        ready, terminal = asyncio.Event(), self._master
        begin(terminal, ready.set)
        try:
            await ready.wait()
        finally:
            if not self._closed:
                end(terminal)
