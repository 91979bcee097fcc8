"""Ends of workers of this machine, from their records or from the state of the machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from benchpool_scheduler.contract.causes import cause_of
from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerId
from benchpool_scheduler.worker import machine_faults, process_identity, records
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.supervisor import cgroups, containment, process_notes
from benchpool_scheduler.worker.supervisor_process import take_lock

from .environment import tag

T = TypeVar("T")

LOST_TEXT = "its machine was restarted, or its supervisor was killed"
GONE_TEXT = "its folder is not in the state folder; any processes of it were ended"

AGAIN_S = (0.1, 5.0)
"""Delay before a retry after a fault of the machine, in seconds: the first and the longest."""

SWEEP_S = 0.02
LAST_LINES = 4096
WORDS = frozenset(str(word) for word in EndedBy)


async def patiently(work: Callable[[], T], *, in_thread: bool = False) -> T:
    """Return the result of ``work``; retry after faults of the machine. Other errors propagate."""
    pause = AGAIN_S[0]
    while True:
        try:
            return await asyncio.to_thread(work) if in_thread else work()
        except (OSError, RuntimeError) as error:
            if machine_faults.number_of(error) is None:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, AGAIN_S[1])


def record(by: EndedBy, text: str, fault: int | None = None) -> dict[str, object]:
    """Return the record of an end that no supervisor wrote."""
    return {
        "version": 1,
        "exit_code": None,
        "by": by.value,
        "text": text,
        "started": None,
        "ended": time.time(),
        "fault": fault,
    }


def event(worker: WorkerId, end: dict[str, object]) -> WorkerEnded:
    """Return the event for a record; an unknown kind of end counts as lost."""
    code, at, text = end.get("exit_code"), end.get("ended"), end.get("text")
    by, fault = end.get("by"), end.get("fault")
    return WorkerEnded(
        worker,
        float(at) if isinstance(at, int | float) else time.time(),
        code if isinstance(code, int) else None,
        EndedBy(by) if by in WORDS else EndedBy.LOST,
        text if isinstance(text, str) else None,
        fault if isinstance(fault, int) else None,
        cause_of(end.get("cause")),
        traceback if isinstance(traceback := end.get("traceback"), str) else None,
    )


def could_not_start(error: OSError) -> dict[str, object]:
    """Return the record of a start that failed in this process."""
    fault = machine_faults.number_of(error)
    if fault is not None:
        return record(EndedBy.MACHINE_FAULT, machine_faults.sentence(fault), fault)
    return record(
        EndedBy.COULD_NOT_START, f"the machine could not start the worker: {error.strerror}"
    )


def put_on_record(folders: Folders, worker: WorkerId, end: dict[str, object]) -> None:
    """Write the record of an end, if the disk accepts it."""
    # A full disk must not prevent the service from learning of the end.
    with contextlib.suppress(OSError):
        folder = folders.make(worker, passable=False)
        records.write(str(folder), records.EXIT, end, durable=True)


def lose(folders: Folders, worker: WorkerId, status: int | None) -> dict[str, object] | None:
    """Return and record the end of a worker without a supervisor, or None if one has begun.

    The lock by which supervisors begin is held meanwhile. If an earlier service is starting a
    supervisor, either the supervisor is seen here, or it sees the record. Raises OSError if the
    machine cannot list its processes now.
    """
    lock: int | None = -1
    gone = not folders.worker(worker).exists()
    with contextlib.suppress(OSError):
        lock = take_lock(folders.make(worker, passable=False))
    if lock is None:
        return None
    try:
        end = records.read(str(folders.worker(worker)), records.EXIT)
        if end is None:
            end = without_record(folders, worker, status, gone=gone)
            put_on_record(folders, worker, end)
        return end
    finally:
        if lock >= 0:
            os.close(lock)


def without_record(
    folders: Folders, worker: WorkerId, status: int | None, *, gone: bool = False
) -> dict[str, object]:
    """Return the end of a worker whose supervisor left no record, and kill its processes.

    A supervisor that could write nothing before it began reports the fault as its exit status. If
    its interpreter could not begin, it leaves a line of error output.

    Args:
        status: The supervisor's exit status; None after a signal or if unknown.
        gone: Its folder is missing, as after the loss of a disk. The worker may run nevertheless,
            and its GPUs are not assigned again before it has ended.

    Raises OSError if the machine cannot list its processes now.
    """
    folder = folders.worker(worker)
    if gone:
        containment.sweep_until_clean(tag(worker, folders), None, SWEEP_S)
        return record(EndedBy.LOST, GONE_TEXT)
    process = records.read(str(folder), records.PROCESS)
    if process is not None and process.get("boot_id") == process_identity.boot_id():
        noted = process_notes.noted(str(folder))
        _sweep(str(process.get("tag")), _group(process), noted)
    begun = process is not None and process.get("started") is not None
    if status in machine_faults.FAULTS and not begun:
        return record(EndedBy.MACHINE_FAULT, machine_faults.sentence(status), status)
    if status and process is None:
        text = f"its supervisor could not begin ({_last_line(folder / 'supervisor.err')})"
        return record(EndedBy.MACHINE_FAULT, text)
    return record(EndedBy.LOST, LOST_TEXT)


def _group(process: Mapping[str, object]) -> cgroups.Group | None:
    """Return the cgroups that a supervisor recorded; an earlier version recorded only one."""
    one, every = process.get("group"), process.get("groups")
    folders = every if isinstance(every, list) and every else [one]
    known = [folder for folder in folders if isinstance(folder, str)]
    return cgroups.Group(known) if known else None


def _sweep(tag: str, group: cgroups.Group | None, noted: containment.Processes) -> None:
    containment.sweep_until_clean(tag, group, SWEEP_S, noted)
    if group is not None:
        group.remove()


def _last_line(path: Path) -> str:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(-min(LAST_LINES, os.fstat(file.fileno()).st_size), os.SEEK_END)
        lines = file.read().decode(errors="replace").strip().splitlines()
        if lines:
            return lines[-1][:200]
    return "it left no message"
