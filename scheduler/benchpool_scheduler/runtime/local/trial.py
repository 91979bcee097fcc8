"""Test start of a worker, which shows whether the machine can start workers again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from pathlib import Path

from benchpool_scheduler.runtime import Launch, StartFault, WorkerId
from benchpool_scheduler.worker import machine_faults, records
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.supervisor_process import take_lock

from . import supervisors
from .sandbox import Sandbox

NAME = ".trial"
ROOM = 1 << 20
"""Bytes that must fit on the disk in addition to the records of a worker."""

PIECE = 1 << 16
PATIENCE_S, REAP_S = 30.0, 0.2
"""Timeout for a trial, and delay before a killed trial is reaped, in seconds."""

TOO_LONG = f"a test start did not end within {PATIENCE_S:.0f} s"
COMMAND = ("sh", "-c", ":")


async def try_start(folders: Folders) -> StartFault | None:
    """Start a worker that ends at once, outside the jobs; return the fault, or None."""
    folder = folders.jobs / NAME
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        _take_room(folder)
        launch = Launch(WorkerId("trial", 1, 0), COMMAND, {}, (), folder)
        config = supervisors.supervisor_config(launch, folders, Sandbox("off", log_bytes=ROOM))
        config |= {"folders": [], "output": str(folder)}
        lock = take_lock(folder)
        if lock is None:
            return StartFault(None, "an earlier test start has not ended")
        try:
            handle, ready = supervisors.start(folder, config, lock)
        finally:
            os.close(lock)
        os.close(ready)
        status = await _end_of(handle)
        end = records.read(str(folder), records.EXIT)
    except OSError as error:
        number = machine_faults.number_of(error)
        text = machine_faults.sentence(number) if number else str(error) or TOO_LONG
        return StartFault(number, text)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _verdict(end, status)


def _take_room(folder: Path) -> None:
    with open(folder / "room", "wb", buffering=0) as file:
        for _ in range(ROOM // PIECE):
            file.write(bytes(PIECE))
        os.fsync(file.fileno())


async def _end_of(handle: supervisors.SupervisorHandle) -> int | None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(handle.pidfd, ended.set)
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
    except (OSError, TimeoutError):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle.pidfd, signal.SIGKILL)
        await asyncio.sleep(REAP_S)
        raise
    finally:
        with contextlib.suppress(OSError):
            loop.remove_reader(handle.pidfd)
        status = handle.reap()
    return status


def _verdict(end: dict[str, object] | None, status: int | None) -> StartFault | None:
    if end is None:
        known = status if status in machine_faults.FAULTS else None
        text = "its supervisor left no message" if known is None else machine_faults.sentence(known)
        return StartFault(known, text)
    if end.get("exit_code") == 0:
        return None
    fault = end.get("fault")
    return StartFault(fault if isinstance(fault, int) else None, str(end.get("text")))
