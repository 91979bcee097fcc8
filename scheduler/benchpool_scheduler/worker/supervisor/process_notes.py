"""Record of a worker's processes, for machines without cgroups.

As sub-reaper the supervisor adopts processes that left their parent. When it is killed itself, they
go to the system's first process. Processes with a cleared environment cannot be identified then.
The recorded processes are killed before the next attempt begins.
"""

from __future__ import annotations

import contextlib
import os
import time

from .. import process_identity, records
from . import containment

EVERY_S, REST = 0.5, 50.0
"""Shortest interval between two looks, in seconds, and as a multiple of the time of one look."""

MOST = 1500
"""Most processes that are recorded; more exceed the size limit of a record."""


class ProcessNotes:
    """Keeps ``processes.json`` current with the processes below this one."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._noted: frozenset[tuple[int, int]] = frozenset()
        self.look_at: float | None = None

    def look(self, now: float) -> None:
        """Record new processes; after a fault of the machine the next look tries again."""
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            found = frozenset(tree(os.getpid()))
            if not found <= self._noted:
                record: dict[str, object] = {
                    "boot_id": process_identity.boot_id(),
                    "processes": sorted(found)[:MOST],
                }
                records.write(self._folder, records.PROCESSES, record, durable=False)
                self._noted = found
        self.look_at = now + max(EVERY_S, REST * (time.monotonic() - begun))


def noted(folder: str) -> list[tuple[int, int]]:
    """Return the processes recorded since the machine started.

    Raises OSError if the machine cannot read the record now.
    """
    record = records.read(folder, records.PROCESSES)
    if record is None or record.get("boot_id") != process_identity.boot_id():
        return []
    found = record.get("processes")
    return [(int(pid), int(ticks)) for pid, ticks in found] if isinstance(found, list) else []


def tree(root: int) -> containment.Processes:
    """Return the processes below a process, from the kernel's lists of children if available."""
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):
        return containment.descendants(root)
    found: list[tuple[int, int]] = []
    queue = [root]
    while queue:
        for pid in _children(queue.pop()):
            ticks = process_identity.start_ticks(pid)
            if ticks is not None:
                found.append((pid, ticks))
                queue.append(pid)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found
