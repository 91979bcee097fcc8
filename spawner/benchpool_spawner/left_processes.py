"""Search for processes that a notebook server left running, and their end.

As for jobs, three methods are combined. They are the server's cgroup, if there is one, the mark of
its start in the environment of its descendants, and the processes seen below it earlier. The last
one finds processes that cleared their environment. Without a cgroup the server adopts orphaned
descendants. A process then escapes only if it cleared its environment and was not seen before the
server was killed.
"""

from __future__ import annotations

import asyncio
import os

from benchpool_scheduler.worker import process_identity
from benchpool_scheduler.worker.supervisor import containment, process_notes
from benchpool_scheduler.worker.supervisor.cgroups import Group
from benchpool_scheduler.worker.supervisor.containment import Processes

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0


def look(pid: int, noted: Processes) -> Processes:
    """Return the living processes below a server, including those seen earlier.

    Processes that this account may not end are left out, such as root processes started with
    ``sudo``.
    """
    before = {one for one in noted if process_identity.start_ticks(one[0]) == one[1]}
    found = set(before)
    for root in (pid, *(one for one, _ in before)):
        found.update(process_notes.tree(root))
    return tuple(sorted(filter(_is_ours, found)))[: process_notes.MOST]


def _is_ours(process: tuple[int, int]) -> bool:
    try:
        os.kill(process[0], 0)
    except OSError:
        return False
    return True


async def end(tag: str, group: Group | None, noted: Processes) -> None:
    """Kill all processes with the tag, in the cgroup or noted earlier, and wait for their end.

    The wait has no limit, because the kernel may be unable to end a process.
    """
    pause, clean = FIRST_PAUSE_S, 0
    while True:
        try:
            gone = await asyncio.to_thread(containment.sweep, tag, group, noted)
        except OSError as error:
            if error.errno not in containment.BLIND:
                raise
            gone = False
        clean = clean + 1 if gone else 0
        if clean == 2:  # one look may miss both parent and child of a fast fork
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
