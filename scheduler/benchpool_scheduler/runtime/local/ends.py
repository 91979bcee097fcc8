"""How workers of this machine ended: by their records, or by what the machine says of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerId
from benchpool_scheduler.worker import machine_faults, process_identity, records
from benchpool_scheduler.worker.supervisor import containment, process_notes

T = TypeVar("T")

LOST_TEXT = "its machine was restarted, or the process that watched over it was killed"

AGAIN_S = (0.1, 5.0)
"""Pause after a fault of the machine before something is tried again: the first, the longest."""

SWEEP_S = 0.02
LAST_LINES = 4096
WORDS = frozenset(str(word) for word in EndedBy)


async def patiently(work: Callable[[], T], *, in_thread: bool = False) -> T:
    """Return what ``work`` returns; a fault of the machine is waited for. Other errors are its."""
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
    """Return what a record says; what makes no sense is a loss."""
    code, at, text = end.get("exit_code"), end.get("ended"), end.get("text")
    by, fault = end.get("by"), end.get("fault")
    return WorkerEnded(
        worker,
        float(at) if isinstance(at, int | float) else time.time(),
        code if isinstance(code, int) else None,
        EndedBy(by) if by in WORDS else EndedBy.LOST,
        text if isinstance(text, str) else None,
        fault if isinstance(fault, int) else None,
    )


def could_not_start(error: OSError) -> dict[str, object]:
    """Return the record of a start that this process could not make."""
    fault = machine_faults.number_of(error)
    if fault is not None:
        return record(EndedBy.MACHINE_FAULT, machine_faults.sentence(fault), fault)
    return record(
        EndedBy.COULD_NOT_START, f"the machine could not start the worker: {error.strerror}"
    )


def without_record(folder: Path, status: int | None) -> dict[str, object]:
    """Return the end of a worker whose supervisor left none, and kill what it left.

    A supervisor that could write nothing before it began says the fault as its exit status; one
    whose interpreter could not begin leaves a line.

    Args:
        status: The supervisor's exit status, None where a signal ended it or nobody knows.

    Errors: OSError when the machine cannot tell now what runs.
    """
    process = records.read(str(folder), records.PROCESS)
    if process is not None and process.get("boot_id") == process_identity.boot_id():
        group = process.get("group")
        noted = process_notes.noted(str(folder))
        _sweep(str(process.get("tag")), group if isinstance(group, str) else None, noted)
    begun = process is not None and process.get("started") is not None
    if status in machine_faults.FAULTS and not begun:
        return record(EndedBy.MACHINE_FAULT, machine_faults.sentence(status), status)
    if status and process is None:
        text = f"its supervisor could not begin ({_last_line(folder / 'supervisor.err')})"
        return record(EndedBy.MACHINE_FAULT, text)
    return record(EndedBy.LOST, LOST_TEXT)


def _sweep(tag: str, group: str | None, noted: containment.Processes) -> None:
    containment.sweep_until_clean(tag, group, SWEEP_S, noted)
    if group is not None:
        containment.remove_group(group)


def _last_line(path: Path) -> str:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(-min(LAST_LINES, os.fstat(file.fileno()).st_size), os.SEEK_END)
        lines = file.read().decode(errors="replace").strip().splitlines()
        if lines:
            return lines[-1][:200]
    return "it left no word"
