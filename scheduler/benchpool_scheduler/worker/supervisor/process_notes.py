"""The processes of a worker, noted in a file where no cgroup holds them together.

As sub-reaper the supervisor adopts whatever leaves its parent. When it is killed itself, that goes
to the system's first process, and one that has cleared its environment bears no sign of whose it
is. What is noted here is ended before the next attempt begins.
"""

from __future__ import annotations

import contextlib
import os
import time

from .. import process_identity, records
from . import containment

EVERY_S, REST = 0.5, 50.0
"""Seconds between two looks, and at least so many times what a look takes."""

MOST = 1500
"""So many processes are noted; more do not fit into a record that is read."""


class ProcessNotes:
    """Keeps ``processes.json`` in step with what lives below this process."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._noted: frozenset[tuple[int, int]] = frozenset()
        self.look_at: float | None = None

    def look(self, now: float) -> None:
        """Note what is new; a fault of the machine leaves it to the next look."""
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
    """Return what was noted since the machine started. Errors: OSError, it cannot tell now."""
    record = records.read(folder, records.PROCESSES)
    if record is None or record.get("boot_id") != process_identity.boot_id():
        return []
    found = record.get("processes")
    return [(int(pid), int(ticks)) for pid, ticks in found] if isinstance(found, list) else []


def tree(root: int) -> containment.Processes:
    """Return what lives below a process, by the kernel's own short lists where it has them."""
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
