"""Actions inside running workers of this machine: stacks, shells, and files in the results."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Mapping

import msgspec

from benchpool_scheduler.contract.stacks import WorkerStacks
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.runtime.shells import ShellChannel
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.stacks import taking

from . import shells
from .running_worker import RunningWorker

WRITE_S = 20.0
WRITE = 'umask 077; cat > ".$1" && mv -f ".$1" "$1"'


class LocalInside:
    """Actions inside workers; ``running`` are the workers with a living supervisor."""

    def __init__(self, running: Mapping[WorkerId, RunningWorker], folders: Folders) -> None:
        self._running = running
        self._folders = folders

    async def stacks(self, worker: WorkerId) -> WorkerStacks:
        """Return the stacks of a worker's Python processes; may take seconds."""
        run = self._running.get(worker)
        if run is None or run.let_go:
            return WorkerStacks(why="It is not running.")
        found = await asyncio.to_thread(taking.take, run.handle.pid)
        return msgspec.convert(found, WorkerStacks)

    async def shell(self, worker: WorkerId, rows: int, columns: int, term: str) -> ShellChannel:
        """Open a shell inside a worker. Raises OSError."""
        run = self._running.get(worker)
        if run is None or run.let_go:
            raise ProcessLookupError(3, "it does not run")
        return await shells.open_shell(run, rows, columns, term)

    async def leave(self, job: str, name: str, text: bytes) -> None:
        """Write a file into the output folder of a job. Raises OSError.

        The folder's owner controls its contents, so the write uses the owner's account.
        """
        folder = self._folders.output(job)
        owner = os.lstat(folder)
        if not stat.S_ISDIR(owner.st_mode):
            raise NotADirectoryError(20, "the results are not a folder", str(folder))
        drop = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        writer = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", WRITE, "sh", name),
            cwd=folder,
            env={"PATH": "/usr/bin:/bin"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            **(drop if os.geteuid() == 0 and owner.st_uid else {}),  # type: ignore[arg-type]
        )
        try:
            async with asyncio.timeout(WRITE_S):
                await writer.communicate(text)
        except TimeoutError:
            writer.kill()
            await writer.wait()
        if writer.returncode:
            raise OSError(f"{name} could not be written (exit code {writer.returncode})")
